/** An agent as users hold it: a model, tools and middleware. It keeps nothing per run, so one agent serves any number at once. */

import { type ComposeOptions, composeAs, flatten, guardsFrom } from '../compose/compose.js';
import { resumedPlan } from '../compose/resumed-plan.js';
import { OBSERVER } from '../compose/run-options.js';
import type { RequestParts } from '../kernel/context/run-port.js';
import type { Tracer } from '../kernel/context/tracing.js';
import { STORE_TIMEOUT_MS } from '../kernel/journal/bounded-store.js';
import type { OpenRun } from '../kernel/journal/journaled-run.js';
import type { ComposedPlan } from '../kernel/layers/onion.js';
import { type Clock, systemClock } from '../kernel/lib/clock.js';
import { invalidOption, messageOf, shown } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { randomId } from '../kernel/lib/random-id.js';
import { checkFields, checkKeys, checkValue } from '../kernel/lib/shapes.js';
import { deepFreeze, type MessageInput } from '../kernel/messages/messages.js';
import type { Model, ModelSettings, PriceOf } from '../kernel/messages/model.js';
import type { Observer } from '../kernel/protocol/events.js';
import type { Limits, SessionLimits } from '../kernel/protocol/limits.js';
import type { Middleware, MiddlewareList, Plan } from '../kernel/protocol/middleware.js';
import { RULE_HOOKS } from '../kernel/protocol/plan.js';
import type { RunResult } from '../kernel/protocol/result.js';
import type { QueueModes, ResumeOptions, RunOptions } from '../kernel/protocol/run-options.js';
import type { Store } from '../kernel/protocol/store.js';
import type { Tool } from '../kernel/protocol/tool.js';
import type { TraceMode } from '../kernel/protocol/trace.js';
import { priceReader } from '../kit/prices.js';
import { joinedBlocks } from '../kit/system-blocks.js';
import { terminalText } from '../kit/terminal-text.js';
import { memoryStore } from '../stores/memory/index.js';
import { tracer } from '../trace/index.js';
import { AGENT_OPTIONS, type AgentOptions, SESSION_OPTIONS, type SessionOptions } from './agent-options.js';
import { type AsToolOptions, agentTool } from './agent-tool.js';
import type { RunStream } from './event-stream.js';
import { type Explanation, explainPlan } from './explain.js';
import { FOREIGN_AGENT } from './foreign-agent.js';
import { ObserverFeed, type ObserverProblem } from './observer-feed.js';
import { partialsOf } from './partials.js';
import { checkSessionId } from './rewind.js';
import { Session } from './session.js';

declare module '../kernel/protocol/contexts.js' {
  interface RunningAgent extends Agent {}
}

/**
 * A model with tools and middleware. One agent serves any number of runs and sessions at once.
 *
 * @example
 * const agent = new Agent({ model, tools: [add], middleware: [retry()] });
 * const { text } = await agent.run('What is 2 + 3?');
 */
export class Agent {
  readonly name: string;
  readonly model: Model;
  readonly systemPrompt: string;
  readonly settings: ModelSettings;
  readonly limits: Limits;
  readonly sessionLimits: SessionLimits;
  readonly store: Store;
  readonly tenant: string | undefined;
  readonly toolExecution: 'parallel' | 'sequential';
  readonly queue: QueueModes;
  readonly teardownTimeoutMs: number;
  readonly storeTimeoutMs: number;
  readonly clock: Clock;
  readonly trace: TraceMode;
  /** The plan the middleware list was composed into. */
  readonly plan: ComposedPlan;
  /** @internal Runs in progress hold this very list, so an observer that is added later sees them too. */
  readonly _feeds: ObserverFeed[] = [];
  /** @internal The Session object whose run is in progress, by session id. */
  readonly _busy = new Map<string, Session>();
  /** @internal No store was given, so single runs are forgotten when they end. */
  readonly _forgets: boolean;
  /** @internal */ readonly _tracer: Tracer = tracer;
  /** @internal */ readonly _partialsOf = partialsOf;
  /** @internal */ readonly _onRequest: AgentOptions['onRequest'];
  /** The price of a model: its own, or what the option `priceOf` says. */
  readonly priceOf: PriceOf;
  /** Makes the ids of runs, messages and sessions. */
  readonly newId: () => string;
  private readonly laterSettings: ModelSettings;
  private readonly reportObserver: (problem: ObserverProblem) => void;
  private observed = 0;
  private readonly middleware: readonly Middleware[];
  private readonly composing: ComposeOptions;
  /** The plans of this agent as a sub-agent, by the plan of the caller. */
  private readonly inherited = new WeakMap<Plan, ComposedPlan>();

  constructor(options: AgentOptions) {
    checkFields('Agent', AGENT_OPTIONS, options, FOREIGN_AGENT);
    const { settings = {}, middleware = [], observers = [] } = options;
    this.name = options.name ?? 'agent';
    this.model = options.model;
    const { systemPrompt, systemBlocks } = joinedBlocks(options.systemPrompt ?? '');
    this.systemPrompt = systemPrompt;
    this.settings = ownSettings(systemBlocks ? { ...settings, systemBlocks } : settings);
    this.laterSettings = options.toolChoiceTurns === 'all' ? this.settings : undemanding(this.settings);
    this.limits = Object.freeze({ ...options.limits });
    this.sessionLimits = Object.freeze({ ...options.sessionLimits });
    this._forgets = options.store === undefined;
    this.store = options.store ?? memoryStore();
    this.tenant = options.tenant;
    this.toolExecution = options.toolExecution ?? 'parallel';
    this.queue = Object.freeze({ ...options.queue });
    this.teardownTimeoutMs = options.teardownTimeoutMs ?? 5000;
    this.storeTimeoutMs = options.storeTimeoutMs ?? STORE_TIMEOUT_MS;
    this.clock = options.clock ?? systemClock;
    this.trace = options.trace ?? 'off';
    this._onRequest = options.onRequest;
    this.reportObserver = options.onObserverError ?? warn;
    for (const observer of observers) this.observe(observer);
    this.priceOf = priceReader(options.priceOf);
    const { newId } = options;
    this.newId = newId ? () => checkId(newId()) : randomId;
    this.middleware = flatten(middleware);
    this.composing = {
      tools: options.tools ?? [],
      state: options.state ?? [],
      hooks: Object.fromEntries(RULE_HOOKS.map((hook) => [hook, options[hook]])),
      replaces: options.replaces,
    };
    this.plan = composeAs(this.middleware, this.composing);
  }

  /** Runs to the end. Resolves when done, stopped or suspended; rejects with a `RunError` if it fails or is aborted. */
  run(input: MessageInput | readonly MessageInput[], options?: RunOptions): Promise<RunResult> {
    try {
      return this.single().run(input, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Runs and yields events as they happen. `result` settles like `run()`. Leaving the loop early aborts the run. */
  stream(input: MessageInput | readonly MessageInput[], options?: RunOptions): RunStream {
    return this.single().stream(input, options);
  }

  /** A conversation over several runs. The same id brings back the same history. */
  session(id: string, options: SessionOptions = {}): Session {
    checkSessionId(id);
    checkFields('session()', SESSION_OPTIONS, options);
    const { tenant, store = this.store } = options;
    return new Session(this, id, false, store, tenant);
  }

  /**
   * Makes this agent a tool of another. Each call is a run in a session under the caller's, in the caller's store. It
   * shares budgets, abort and tenant. Its questions suspend the caller, and the answers reach it.
   *
   * @example
   * const clerk = new Agent({ name: 'clerk', model, tools: [lookUp] });
   * const boss = new Agent({ model, tools: [clerk.asTool({ name: 'ask_clerk', description: 'Asks the clerk.' })] });
   */
  asTool<Input = { prompt: string }, Output = Input>(
    options: AsToolOptions<Input, Output>,
  ): Tool<Input, Output> {
    return agentTool(this, options);
  }

  /** Shows what is composed, in which order, and what is dangerous about it. `String(explanation)` is for people. */
  explain(options: Pick<RunOptions, 'middleware'> = {}): Explanation {
    checkKeys('explain()', options, ['middleware']);
    return explainPlan(this.planFor(options.middleware));
  }

  /**
   * Adds an observer, and returns a function that removes it. It sees every run that begins from now on, and the rest
   * of a run in progress if somebody already reads or observes that run. Once removed, it sees nothing more.
   *
   * @example
   * const remove = agent.observe((event) => console.log(event.type));
   */
  observe(observer: Observer): () => void {
    checkValue('observer', OBSERVER, observer);
    const feed = new ObserverFeed(observer, this.observed++, this.reportObserver);
    this._feeds.push(feed);
    return () => {
      feed.close();
      const index = this._feeds.indexOf(feed);
      if (index >= 0) this._feeds.splice(index, 1);
    };
  }

  /** @internal Feeds for the observers of one run. */
  _feedsFor(observers: readonly Observer[] | undefined): readonly ObserverFeed[] | undefined {
    return observers?.map((observer, i) => new ObserverFeed(observer, i, this.reportObserver));
  }

  /** @internal The session of a sub-agent, in the store of its caller. */
  _childSession(id: string, forget: boolean, store: Store): Session {
    return new Session(this, id, forget, store);
  }

  /** Settles when observers have seen every event so far. */
  async observersIdle(): Promise<void> {
    await Promise.all(this._feeds.map((feed) => feed.idle()));
  }

  /**
   * @internal The plan with per-run middleware inside, and the guards of the caller's plan. `names`: names for the middleware,
   * in order, if they differ from the usual ones.
   */
  planFor(middleware: MiddlewareList | undefined, above?: Plan, names?: readonly string[]): ComposedPlan {
    const usual = middleware === undefined && !names;
    const known = usual ? (above ? this.inherited.get(above) : this.plan) : undefined;
    if (known) return known;
    const own = [...this.middleware, ...(middleware === undefined ? [] : flatten(middleware))];
    const guards = above ? guardsFrom(above, own) : [];
    const plan =
      usual && guards.length === 0 ? this.plan : composeAs([...own, ...guards], this.composing, names);
    if (usual && above) this.inherited.set(above, plan);
    return plan;
  }

  /** @internal The same for a run that is resumed: its middleware have the names that its state is stored under. */
  resumedPlan(open: OpenRun, plan: ComposedPlan, options: ResumeOptions, above?: Plan): ComposedPlan {
    const { middleware, allowPlanChange } = options;
    return resumedPlan(open, plan, allowPlanChange, (names) => this.planFor(middleware, above, names));
  }

  /** @internal The request that model calls of a turn start from. `before`: that of the previous turn. */
  request({ tools }: Plan, turn: number, before?: RequestParts): RequestParts {
    const { model, systemPrompt } = this;
    const settings = turn <= 1 ? this.settings : this.laterSettings;
    if (before?.settings === settings) return before;
    return { systemPrompt, tools, model, settings, messages: undefined };
  }

  private single(): Session {
    return new Session(this, `s_${this.newId()}`, this._forgets);
  }
}

/** Drops a tool choice that demands a call. One that allows or forbids calls stays. */
function undemanding(settings: ModelSettings): ModelSettings {
  const { toolChoice, ...rest } = settings;
  return toolChoice === 'required' || typeof toolChoice === 'object' ? Object.freeze(rest) : settings;
}

/** A copy, so that the caller may change its own. */
function ownSettings(settings: ModelSettings): ModelSettings {
  try {
    return deepFreeze(structuredClone(settings));
  } catch (cause) {
    throw invalidOption('settings', `plain data (${messageOf(cause)})`, settings);
  }
}

/** An id that isn't text, such as a promise, would be the same for every session. */
function checkId(id: string): string {
  checkValue('newId()', { ...kinds.nonEmptyText, expected: 'non-empty text, at once' }, id);
  return id;
}

function warn(problem: ObserverProblem): void {
  const what =
    'error' in problem
      ? `threw: ${shown(problem.error instanceof Error ? problem.error.message : problem.error)}`
      : `is too slow; ${problem.dropped} events were dropped`;
  globalThis.console.warn(terminalText(`[allium] observer "${problem.observer}" ${what}`));
}
