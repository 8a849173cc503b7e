/** Every middleware of the box as the combinations use it: one line each, with what it declares about errors. */
import type { Clock, Middleware, Model } from 'allium';
import * as box from 'allium/middleware';
import { scriptedModel } from 'allium/testing';
import { z } from 'zod';

/** What a factory may need. */
export interface Surroundings {
  readonly clock: Clock;
  /** Stands in for the model of the agent. */
  readonly spare: Model;
  /** What `record` wrote when nothing went wrong. */
  readonly cassette: readonly string[];
}

export interface Member {
  readonly name: string;
  /** `nth` tells two of the same kind apart, for those that need names. */
  readonly make: (around: Surroundings, nth: number) => Middleware;
  /** Errors that pass because of it: the call is made again or elsewhere, or a result takes the place of the error. */
  readonly recovers?: readonly ('transient-model' | 'transient-tool' | 'tool')[];
  /** Codes of errors that it puts in the place of others. The original is still to be found in them. */
  readonly maps?: readonly string[];
}

const silent = { error() {}, info() {}, debug() {} };
const price = { input: 1, output: 2 };
const ignore = (): void => {};

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
  // One place only: whoever does not give it back is noticed at once.
  { name: 'concurrency', make: () => box.concurrency({ max: 1 }) },
  { name: 'concurrency of tools', make: () => box.concurrency({ max: 1, scope: 'tool' }) },
  { name: 'console-logger', make: () => box.consoleLogger({ level: 'debug', console: silent }) },
  { name: 'content-truncator', make: () => box.contentTruncator({ maxChars: 100 }) },
  { name: 'cost-tracking', make: () => box.costTracking({ prices: () => price }) },
  {
    name: 'fallback',
    make: ({ spare }) => box.fallback({ models: [spare] }),
    recovers: ['transient-model'],
    maps: ['FALLBACK_EXHAUSTED'],
  },
  { name: 'file-validator', make: () => box.fileValidator({ roots: ['.'] }) },
  {
    name: 'idempotency',
    make: () => box.idempotency({ store: new Map(), key: (ctx) => ctx.toolCall.name }),
  },
  { name: 'loop-guard', make: () => box.loopGuard() },
  { name: 'max-turns', make: () => box.maxTurns() },
  {
    name: 'observability',
    make: () => box.observability({ span: () => ({ end: ignore }), counter: ignore, histogram: ignore }),
  },
  { name: 'patch-tool-calls', make: () => box.patchToolCalls() },
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
  { name: 'stopwatch', make: () => box.stopwatch({ log: ignore }) },
  {
    name: 'structured-output',
    make: () => box.structuredOutput({ schema: z.object({ sum: z.number() }) }),
  },
  {
    name: 'timeout',
    make: () => box.timeout({ modelMs: 60_000, toolMs: 60_000, firstTokenMs: 30_000, idleMs: 30_000 }),
  },
  { name: 'tool-cache', make: () => box.toolCache({ tools: () => true }) },
  {
    name: 'tool-emulator',
    make: () =>
      box.toolEmulator({
        model: scriptedModel(['made up'], { id: 'player', repeat: true }),
        tools: ['look'],
      }),
  },
  { name: 'tool-errors', make: () => box.toolErrors(), recovers: ['tool'] },
];
