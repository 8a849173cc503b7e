/** The options of an agent and its sessions, and how they are checked. */

import type { ExplicitHooks } from '../compose/compose.js';
import { LIMITS, OBSERVER, QUEUE_MODES, SESSION_LIMITS, TRACE } from '../compose/run-options.js';
import type { Clock } from '../kernel/lib/clock.js';
import type { Fields, Kind } from '../kernel/lib/shapes.js';
import type { Model, ModelSettings, PriceOf } from '../kernel/messages/model.js';
import { MODEL, MODEL_SETTINGS } from '../kernel/messages/model.js';
import type { Observer } from '../kernel/protocol/events.js';
import type { Limits, SessionLimits } from '../kernel/protocol/limits.js';
import type { MiddlewareList } from '../kernel/protocol/middleware.js';
import { RULE_HOOKS, type RuleHook } from '../kernel/protocol/plan.js';
import type { QueueModes } from '../kernel/protocol/run-options.js';
import type { StateCell } from '../kernel/protocol/state.js';
import type { RequestHandler, Store } from '../kernel/protocol/store.js';
import type { Tool } from '../kernel/protocol/tool.js';
import type { TraceMode } from '../kernel/protocol/trace.js';
import * as kinds from '../kit/kinds.js';
import { SYSTEM_PROMPT, type SystemBlock } from '../kit/system-blocks.js';
import type { ObserverProblem } from './observer-feed.js';

export interface AgentOptions extends ExplicitHooks {
  /** The model that every turn calls, unless a layer sets another one. */
  readonly model: Model;
  /** The name shown in logs and traces. Hooks see it as `ctx.agent.name`. @default 'agent' */
  readonly name?: string;
  /** Instructions for the model, before the conversation: text, or blocks with their own metadata, such as a cache mark. Hooks see one text, with a blank line between blocks. @default '' */
  readonly systemPrompt?: string | readonly (string | SystemBlock)[];
  /** Tools the model may call, in addition to those of middleware. */
  readonly tools?: readonly Tool[];
  /** Middleware, pipelines and nested lists. The first is outermost. */
  readonly middleware?: MiddlewareList;
  /** How the model is asked: see `ModelSettings`. @default {} */
  readonly settings?: ModelSettings;
  /** In which turns a `toolChoice` that demands a call applies. With `'all'`, an obedient model never finishes by itself. @default 'first' */
  readonly toolChoiceTurns?: 'first' | 'all';
  /** Limits of one run: see `Limits`. */
  readonly limits?: Limits;
  /** Limits over all runs of a session: `turns`, `toolCalls`, `tokens` and `costUsd`. */
  readonly sessionLimits?: SessionLimits;
  /** Where sessions are kept. @default in memory, forgetting each `agent.run()` when it has ended */
  readonly store?: Store;
  /** Functions, or objects with `onEvent()`, that see every event of every run and can't change anything. */
  readonly observers?: readonly Observer[];
  /** Called when an observer throws or is too slow. @default a warning on stderr */
  readonly onObserverError?: (problem: ObserverProblem) => void;
  /** How the calls of one answer run. @default 'parallel' */
  readonly toolExecution?: 'parallel' | 'sequential';
  /** How many waiting messages are taken in at a time: `steering` and `followUps` are each `'all'` or `'one'`. @default all */
  readonly queue?: QueueModes;
  /** Milliseconds that each `afterRun` hook, and code that ignores an abort, may take before the run goes on without it. @default 5000 */
  readonly teardownTimeoutMs?: number;
  /** State cells that belong to no middleware. */
  readonly state?: readonly StateCell<any>[];
  /** Names of guarding middleware whose hooks the explicit ones here may replace. */
  readonly replaces?: readonly string[];
  /** Returns the price of a model that doesn't have one itself. */
  readonly priceOf?: PriceOf;
  /** Milliseconds to wait for one answer of the store. After that the run fails with `STORE_TIMEOUT`, and the session can be resumed. A run that is aborted or out of time waits for `teardownTimeoutMs` at most, but at least a second. `Infinity` for no limit. @default 30000 */
  readonly storeTimeoutMs?: number;
  /** The tenant that new sessions belong to. Opening a session of another tenant fails with `TENANT_MISMATCH`. */
  readonly tenant?: string;
  /** Answers questions to a human while the run waits. If it returns undefined, the run is suspended. If it throws, the run fails, or only the tool call if the tool itself asked. */
  readonly onRequest?: RequestHandler;
  /** `changes`: every hook and layer that changed something leaves a record, in `result.trace` and with the journal. @default 'off' */
  readonly trace?: TraceMode;
  /** The source of all time. @default the system clock */
  readonly clock?: Clock;
  /** Makes run and session ids. @default random */
  readonly newId?: () => string;
}

const METHODS = kinds.methods<Store>('append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take');
const STORE: Kind<Store> = {
  ...METHODS,
  expected: `a store, such as fileStore({ dir }) of "allium/stores/file", or ${METHODS.expected}`,
};

/** Checked where it is used: by `compose()`, or where prices are read. */
const elsewhere = kinds.anything;

export const AGENT_OPTIONS: Fields = {
  model: kinds.required(MODEL),
  name: kinds.nonEmptyText,
  systemPrompt: SYSTEM_PROMPT,
  tools: elsewhere,
  middleware: elsewhere,
  settings: MODEL_SETTINGS,
  toolChoiceTurns: kinds.oneOf('first', 'all'),
  limits: LIMITS,
  sessionLimits: SESSION_LIMITS,
  store: STORE,
  observers: kinds.listOf(OBSERVER),
  onObserverError: kinds.func(),
  toolExecution: kinds.oneOf('parallel', 'sequential'),
  queue: QUEUE_MODES,
  teardownTimeoutMs: kinds.timeout,
  storeTimeoutMs: kinds.number(1, Number.POSITIVE_INFINITY),
  state: elsewhere,
  replaces: elsewhere,
  priceOf: elsewhere,
  tenant: kinds.text,
  onRequest: kinds.func(),
  trace: TRACE,
  clock: kinds.clock(),
  newId: kinds.func(),
  ...Object.fromEntries(RULE_HOOKS.map((hook) => [hook, elsewhere])),
} satisfies Record<Exclude<keyof AgentOptions, RuleHook>, Kind>;

export interface SessionOptions {
  /** The tenant that opens it. New runs belong to this tenant; every method of a session of another tenant fails with `TENANT_MISMATCH`. @default that of the agent */
  readonly tenant?: string;
  /** Where the session is. @default the store of the agent */
  readonly store?: Store;
}

export const SESSION_OPTIONS: Fields = {
  tenant: kinds.text,
  store: STORE,
} satisfies Record<keyof SessionOptions, Kind>;
