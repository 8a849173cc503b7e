/** Every middleware of the box as the combinations use it: one line each, with what it declares about errors. */
import { fileURLToPath } from 'node:url';
import type { Clock, Middleware, Model, RunOptions, Tool } from 'allium';
import * as box from 'allium/middleware';
import { z } from 'zod';
import { CALLS } from './conversation.js';

/** What a factory may need. */
export interface Surroundings {
  readonly clock: Clock;
  /** Stands in for the model of the agent. */
  readonly spare: Model;
  /** What `record` wrote when nothing went wrong. */
  readonly cassette: readonly string[];
  /** Every tool of the conversation. */
  readonly tools: readonly Tool[];
}

export interface Member {
  readonly name: string;
  /** `nth` tells two of the same kind apart, for those that need names. */
  readonly make: (around: Surroundings, nth: number) => Middleware;
  /** Errors that pass because of it: the call is made again or elsewhere, or a result takes the place of the error. */
  readonly recovers?: readonly ('transient-model' | 'transient-tool' | 'tool')[];
  /** Codes of errors that it puts in the place of others. The original is still to be found in them. */
  readonly maps?: readonly string[];
  /** Tools of the conversation that the agent has through it only. */
  readonly holds?: readonly string[];
  /** What a run has to be given for it to do something. */
  readonly runOptions?: Pick<RunOptions, 'goal'>;
  /** It cannot stand in a list twice: the code of the error that says so. */
  readonly once?: 'DUPLICATE_TOOL' | 'DUPLICATE_STATE';
}

const silent = { error() {}, info() {}, debug() {} };
const price = { input: 1, output: 2 };
const ignore = (): void => {};
/** Schemas and models without a script to run out of are made once: thousands of agents are made. */
const sum = z.object({ sum: z.number() });
const says = (id: string, answer: string): Model => ({
  provider: 'test',
  id,
  async *stream() {
    yield { type: 'text', text: answer };
    yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
  },
});
const player = says('player', 'made up');
const summariser = says('summariser', 'There was an earlier question.');
const evaluator = says('evaluator', '{"achieved":true,"reason":"The sum is there."}');
const helper = says('helper', 'helped');
const selector = says('selector', JSON.stringify(CALLS));
const skillFolder = fileURLToPath(new URL('fixtures/skills', import.meta.url));
const aQuarter = (text: string): number => Math.ceil(text.length / 4);

export const BOX: readonly Member[] = [
  {
    name: 'approval',
    // `add` is asked about, and approved in place.
    make: () =>
      box.approval({
        policy: { '*': 'allow', add: { type: 'ask' } },
        onRequest: () => ({ type: 'approve' }),
      }),
  },
  { name: 'audit-log', make: (_, nth) => box.auditLog({ sink: ignore, key: 'k', name: `audit-${nth}` }) },
  { name: 'budget', make: (_, nth) => box.budget({ tokens: 1e5, per: 'session', name: `budget-${nth}` }) },
  { name: 'cache', make: () => box.cache({ ttlMs: 1e9 }) },
  { name: 'call-limits', make: () => box.callLimits({ modelCalls: 10, toolCalls: 10 }) },
  {
    name: 'circuit-breaker',
    // One failure is enough: a signal that counts as one is noticed at once.
    make: () => box.circuitBreaker({ failures: 1, cooldownMs: 30_000 }),
    maps: ['CIRCUIT_OPEN'],
  },
  {
    name: 'circuit-breaker of tools',
    make: () => box.circuitBreaker({ on: 'tool', failures: 1, cooldownMs: 30_000 }),
    maps: ['CIRCUIT_OPEN'],
  },
  {
    name: 'compaction',
    // The earlier question goes, in the first turn.
    make: () =>
      box.compaction({
        summaryModel: summariser,
        maxTokens: 100,
        keepTailTokens: 40,
        minMessages: 1,
        tokenCounter: aQuarter,
      }),
    once: 'DUPLICATE_STATE',
  },
  // One place only: whoever does not give it back is noticed at once.
  { name: 'concurrency', make: () => box.concurrency({ max: 1 }) },
  { name: 'concurrency of tools', make: () => box.concurrency({ max: 1, scope: 'tool' }) },
  { name: 'console-logger', make: () => box.consoleLogger({ level: 'debug', console: silent }) },
  { name: 'content-truncator', make: () => box.contentTruncator({ maxChars: 100 }) },
  {
    name: 'context-editing',
    make: () => box.contextEditing({ clearToolResultsAfterTokens: 0, keep: 0, tokenCounter: aQuarter }),
  },
  { name: 'cost-tracking', make: () => box.costTracking({ prices: () => price }) },
  {
    name: 'deferred-tools',
    // The tool in which things happen is called through it.
    make: ({ tools }) =>
      box.deferredTools({
        groups: [
          {
            id: 'acts',
            title: 'Acts',
            description: 'To act.',
            toolNames: ['act'],
            load: () => tools.filter(({ name }) => name === 'act'),
          },
        ],
      }),
    holds: ['act'],
    once: 'DUPLICATE_TOOL',
  },
  {
    name: 'fallback',
    make: ({ spare }) => box.fallback({ models: [spare] }),
    recovers: ['transient-model'],
    maps: ['FALLBACK_EXHAUSTED'],
  },
  { name: 'file-validator', make: () => box.fileValidator({ roots: ['.'] }) },
  {
    name: 'goal',
    make: () => box.goal({ evaluator }),
    runOptions: { goal: 'the sum is known' },
  },
  // The earlier question does not fit beside the first turn.
  { name: 'history-truncator', make: () => box.historyTruncator({ maxMessages: 6 }) },
  {
    name: 'idempotency',
    make: () => box.idempotency({ store: new Map(), key: (ctx) => ctx.toolCall.name }),
  },
  { name: 'loop-guard', make: () => box.loopGuard() },
  { name: 'max-turns', make: () => box.maxTurns() },
  {
    name: 'memory-recall',
    make: () =>
      box.memoryRecall({
        memory: {
          recall: () => [{ id: 'one', text: 'One and two were added before.', at: 0 }],
          save: ignore,
        },
      }),
  },
  {
    name: 'observability',
    make: () => box.observability({ span: () => ({ end: ignore }), counter: ignore, histogram: ignore }),
  },
  { name: 'patch-tool-calls', make: () => box.patchToolCalls() },
  { name: 'prompt-caching', make: () => box.promptCaching() },
  { name: 'rate-limit', make: () => box.rateLimit({ limit: 1, perMs: 1000 }) },
  {
    name: 'rate-limit of runs',
    make: () => box.rateLimit({ limit: 1, perMs: 1000, scope: 'run' }),
  },
  { name: 'record', make: () => box.record({ to: [] }) },
  {
    name: 'replay',
    // It knows the conversation in which nothing goes wrong, and no other.
    make: ({ cassette }) => box.replay({ from: cassette, onMiss: 'passthrough' }),
  },
  {
    name: 'retry',
    make: () => box.retry({ jitter: 'none' }),
    recovers: ['transient-model'],
  },
  {
    name: 'retry of tools',
    make: () => box.retry({ jitter: 'none', on: 'tool' }),
    recovers: ['transient-tool'],
  },
  { name: 'skills', make: () => box.skills({ dir: skillFolder }), once: 'DUPLICATE_TOOL' },
  { name: 'smooth-stream', make: () => box.smoothStream({ delayMs: 0 }) },
  { name: 'stopwatch', make: () => box.stopwatch({ log: ignore }) },
  {
    name: 'structured-output',
    make: () => box.structuredOutput({ schema: sum }),
  },
  {
    name: 'subagents',
    make: () => box.subagents({ defaultModel: helper }),
    once: 'DUPLICATE_TOOL',
  },
  {
    name: 'timeout',
    make: () => box.timeout({ modelMs: 60_000, toolMs: 60_000, firstTokenMs: 30_000, idleMs: 30_000 }),
  },
  { name: 'todo-list', make: () => box.todoList(), once: 'DUPLICATE_TOOL' },
  { name: 'tool-cache', make: () => box.toolCache({ tools: () => true }) },
  {
    name: 'tool-emulator',
    make: () =>
      box.toolEmulator({
        model: player,
        tools: ['look'],
      }),
  },
  { name: 'tool-errors', make: () => box.toolErrors(), recovers: ['tool'] },
  {
    name: 'tool-result-limit',
    // What `look` returns is too long.
    make: () => box.toolResultLimit({ maxTokens: 100, tokenCounter: (text) => text.length }),
    once: 'DUPLICATE_TOOL',
  },
  {
    name: 'tool-selector',
    // Leaves out what is never called.
    make: () =>
      box.toolSelector({
        model: selector,
        maxTools: CALLS.length,
        alwaysInclude: ['deferred_tool_call', 'read_skill', 'subagent', 'write_todos'],
      }),
  },
];
