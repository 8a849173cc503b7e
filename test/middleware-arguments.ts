import { scriptedModel } from 'allium/testing';

// What to call a middleware factory with when it cannot be called with nothing: kebab name → arguments.
// The layout test makes one of each; most need no entry here, for options have defaults.

export const middlewareArguments: Readonly<Record<string, () => readonly unknown[]>> = {
  concurrency: () => [{ max: 1 }],
  fallback: () => [{ models: [scriptedModel([])] }],
  idempotency: () => [{ store: new Map() }],
  'rate-limit': () => [{ limit: 1, perMs: 1000 }],
  record: () => [{ to: [] }],
  replay: () => [{ from: [] }],
  timeout: () => [{ modelMs: 1000 }],
};
