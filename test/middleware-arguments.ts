import { scriptedModel } from 'allium/testing';
import { z } from 'zod';

// What to call a middleware factory with when it cannot be called with nothing: kebab name → arguments.
// The layout test makes one of each; most need no entry here, for options have defaults.

export const middlewareArguments: Readonly<Record<string, () => readonly unknown[]>> = {
  'audit-log': () => [{ sink: () => {} }],
  budget: () => [{ tokens: 1000 }],
  'call-limits': () => [{ toolCalls: 1 }],
  compaction: () => [{ summaryModel: scriptedModel([]), maxTokens: 1000 }],
  concurrency: () => [{ max: 1 }],
  'deferred-tools': () => [{ groups: [] }],
  fallback: () => [{ models: [scriptedModel([])] }],
  'file-validator': () => [{ roots: ['.'] }],
  goal: () => [{ evaluator: scriptedModel([]) }],
  'history-truncator': () => [{ maxMessages: 10 }],
  idempotency: () => [{ store: new Map() }],
  'memory-recall': () => [{ memory: { recall: () => [], save: () => {} } }],
  'rate-limit': () => [{ limit: 1, perMs: 1000 }],
  record: () => [{ to: [] }],
  replay: () => [{ from: [] }],
  skills: () => [{ dir: '.' }],
  'structured-output': () => [{ schema: z.unknown() }],
  'tool-selector': () => [{ model: scriptedModel([]) }],
  timeout: () => [{ modelMs: 1000 }],
};
