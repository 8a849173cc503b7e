/** A run under way: what the loop, the contexts and the layers share. */

import type { GivenUp } from '../calls/end-children.js';
import type { ToolsRun } from '../calls/tools-run.js';
import { type Context, RunContext, SeamCall } from '../context/context.js';
import type { Meters } from '../context/meter.js';
import type { RequestParts } from '../context/run-port.js';
import { answerRestorers } from '../guards/restore.js';
import { safeOutput, safeValue } from '../guards/safe-values.js';
import { Judgements } from '../guards/verdict-cache.js';
import type { BoundedStore } from '../journal/bounded-store.js';
import type { History } from '../journal/history.js';
import type { Journal } from '../journal/journal.js';
import type { ComposedPlan } from '../layers/onion.js';
import { attribute, codeOf } from '../lib/errors.js';
import { supervised, untilAborted } from '../lib/scope.js';
import { type Message, type Metadata, type ModelResponse, NOTHING } from '../messages/messages.js';
import type { Model } from '../messages/model.js';
import type { Budget } from '../model/budget.js';
import { generate } from '../model/generate.js';
import { Breather } from '../model/model-stream.js';
import type { DeclaredOptions, GenerateRequest, Context as PublicContext } from '../protocol/contexts.js';
import type { GuardVerdict } from '../protocol/guard.js';
import type { Limits, SessionLimits } from '../protocol/limits.js';
import type { Change, StateReader } from '../protocol/result.js';
import type { QueueModes } from '../protocol/run-options.js';
import type { Posted, RequestHandler } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { RunTrace, TraceAct } from '../protocol/trace.js';
import { carry } from './run-outcome.js';
import { RunRecord } from './run-record.js';
import type { Start } from './start.js';

const MAX_CHANGES = 1000;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** The sub-agents of a run. */
class Children {
  /** Runs that have not ended, by the place of their call. */
  running: Map<string, Promise<unknown>> | undefined;
  /** The cells of those that have ended, by the id of their session. */
  states: Map<string, StateReader> | undefined;
  /** Their traces, likewise, if they are traced. */
  traces: Map<string, RunTrace> | undefined;
  /** Calls that may have started some, and were answered without them. */
  givenUp: GivenUp | undefined;
}

export class Run extends RunRecord implements ToolsRun {
  /** The latch of everything that is not inside a model or tool call. */
  readonly call: SeamCall;
  readonly inside: { halt(signal: unknown, by: string | undefined): void }[] = [];
  readonly children = new Children();
  readonly judgements = new Judgements(this);
  readonly breather = new Breather();
  readonly changes: Change[] = [];
  /**
   * Where the loop is. Run layers come before it, and may end the run without it. `woken`: it was about to end as
   * suspended, and goes through the layers again. `over`: its end has been reported, and no event follows.
   */
  loop: 'to come' | 'begun' | 'woken' | 'given up' | 'over' = 'to come';
  /** When this process took over the run, somebody was being asked about its calls, so none of them had begun. */
  asked = false;
  /** What was left in the inbox when it was last read. */
  posted: readonly Posted[] = NOTHING;
  /** What the caller passed for middleware, as guards left it. */
  options: DeclaredOptions;
  /** Who counts what is used; at first, those who count for the parent. */
  meters: Meters | undefined;
  turn: number;
  /** The request that model calls of a turn start from. */
  request: RequestParts;
  /** The structured output, if a middleware has set it. */
  output: unknown;
  /** Which middleware have restarted which turn. */
  private restarts: Set<string> | undefined;

  constructor(
    start: Start,
    readonly plan: ComposedPlan,
    journal: Journal,
    limits: Limits,
    budget: Budget,
    readonly metadata: Metadata,
    traced: { readonly keeps: boolean } | undefined,
  ) {
    super(start, plan, journal, limits, budget);
    this.call = new SeamCall(this, this.scope);
    this.options = start.declared;
    this.meters = start.parent?.meters;
    this.turn = this.open.turns;
    this.request = this.agent.request(plan, 1);
    if (traced) this.trace = this.agent._tracer.record(this, traced.keeps, this.open.trace);
    journal.rest = this.trace;
    start.parent?.inside.push(this);
    // A sub-agent answers a model, which should read placeholders, not originals.
    if (plan.restores.length > 0 && !start.parent && answerRestorers(plan).length > 0)
      this.events.restoreFrom(new RunContext(this, this.scope, NOTHING));
  }

  // ── What it was started with ───────────────────────────────────────────────────────────────────────────────

  get history(): History {
    return this.state.history;
  }
  get store(): BoundedStore {
    return this.start.store;
  }
  get forgets(): boolean {
    return this.start.forgets;
  }
  get tenant(): string | undefined {
    return this.start.tenant;
  }
  get parentRunId(): string | undefined {
    return this.start.parent?.runId;
  }
  get depth(): number {
    const { parent } = this.start;
    return parent ? parent.depth + 1 : 0;
  }
  get resumed(): boolean {
    return this.start.input === undefined;
  }
  get queue(): QueueModes {
    const { queue } = this.start.options;
    return queue ? { ...this.agent.queue, ...queue } : this.agent.queue;
  }
  get onRequest(): RequestHandler | undefined {
    return this.start.options.onRequest ?? this.agent._onRequest;
  }
  get sessionLimits(): SessionLimits {
    return this.agent.sessionLimits;
  }

  nameAt(position: number): string | undefined {
    return this.plan.middleware[position]?.name;
  }

  messageId(number: number): string {
    return this.idPrefix + number;
  }

  newMessages(): readonly Message[] {
    return this.history.from(this.open.from);
  }

  findTool(name: string, tools: readonly Tool[]): Tool | undefined {
    if (tools === this.plan.tools) return this.plan.toolsByName.get(name);
    return tools.find((tool) => tool.name === name);
  }

  /** How many calls of the batch that begins now may run. */
  toolCallsLeft(): number {
    const { toolCalls = UNLIMITED } = this.limits;
    const { toolCalls: session = UNLIMITED } = this.sessionLimits;
    if (toolCalls === UNLIMITED && session === UNLIMITED) return UNLIMITED;
    const answered = this.open.batch?.answered ?? 0;
    return Math.min(toolCalls - this.open.toolCalls, session - this.state.toolCalls) + answered;
  }

  setOutput(output: unknown): void {
    this.output = safeOutput(output, this);
  }

  // ── What is told of it ─────────────────────────────────────────────────────────────────────────────────────

  emitCustom(name: string, given: unknown, by: string | undefined): void {
    if (!this.watched || this.over) return;
    const { runId, sessionId } = this;
    const data = given === undefined ? given : this.safe(given);
    const more = { ...(by && { by }), ...(data !== undefined && { data }) };
    this.emit({ type: 'custom', runId, sessionId, name, ...more });
  }

  /** A promise while the consumer is behind; the time it takes does not count as the run's. */
  pressure(): Promise<void> | undefined {
    const wait = this.events.pressure();
    // An abort ends the wait, and is found where the run goes on.
    return wait && this.paused(() => untilAborted(wait, this.scope).catch(() => {}));
  }

  /** Notes that a middleware acted. */
  note(by: string, what: string, did: TraceAct = 'noted'): void {
    if (this.changes.length < MAX_CHANGES) this.changes.push({ turn: this.turn, by, what });
    this.trace?.note(by, what, did);
  }

  /** Notes a guard's verdict and reports it to observers. */
  report(verdict: GuardVerdict, what: string, about?: PublicContext): void {
    if (this.changes.length < MAX_CHANGES)
      this.changes.push({ turn: this.turn, by: verdict.guard, what, verdict });
    this.trace?.report(verdict, what, about);
    const { runId, sessionId } = this;
    if (this.watched && !this.over) this.emit({ type: 'guard_verdict', runId, sessionId, verdict });
  }

  /** The value without what guards find in it; undefined if one refuses it. */
  safe<T>(value: T): T | undefined {
    return safeValue(value, this);
  }

  /** Notes what a middleware says, after removing what guards find in it. */
  noteSaid(by: string, what: string): void {
    this.note(by, safeValue(what, this, by) ?? 'said something that guards withhold');
  }

  // ── Calls ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** A model call of a middleware's own. */
  generate(caller: Context, model: Model, request: GenerateRequest): Promise<ModelResponse> {
    return generate(this, caller, model, request);
  }

  /** Lets work wind down when the run is aborted; does not wait for code that ignores its signal. */
  supervise<T>(work: PromiseLike<T>, graceMs = this.agent.teardownTimeoutMs): Promise<T> {
    return supervised(work, this.scope, this.clock.setTimer, graceMs);
  }

  /** `onError` may start a turn again once per middleware. */
  mayRestart(name: string): boolean {
    const key = `${this.turn}\n${name}`;
    this.restarts ??= new Set();
    if (this.restarts.has(key)) return false;
    this.restarts.add(key);
    return true;
  }

  /** A call gets no result of its own. The last batch is the only one that can have such calls. */
  giveUp(messageId: string, index: number): void {
    const { givenUp } = this.children;
    this.children.givenUp = { messageId, calls: [...(givenUp?.calls ?? []), index] };
  }

  // ── How it ends ────────────────────────────────────────────────────────────────────────────────────────────

  /** A stop was latched somewhere in the run. Everything in it hears of it, sub-agents too, and begins nothing. */
  halt(signal: unknown, by: string | undefined): void {
    // `latch` calls this again.
    if (this.call.latched === undefined) this.call.latch(signal, by);
    else for (const one of [...this.inside]) one.halt(signal, by);
  }

  /** Notes that it was the store that failed. */
  ofStore(error: unknown): unknown {
    if (codeOf(error) === undefined) attribute(error, { hook: 'store' }, this.call);
    return error;
  }

  /** Surrenders, but writes a late result first, so that the tool's effect is not in doubt. */
  async lose(error: unknown): Promise<never> {
    await this.journal.settleLate();
    throw this.surrender(this.ofStore(error));
  }

  /** Attaches the result so far to the error that the run fails with. */
  carry(error: unknown, ctx: RunContext): void {
    carry(this, error, ctx);
  }

  get over(): boolean {
    return this.loop === 'over';
  }

  /** Its end has been reported: no event follows, even if something is left running in it. */
  end(): void {
    this.loop = 'over';
    const { inside } = this.start.parent ?? {};
    inside?.splice(inside.indexOf(this), 1);
  }
}

/** The run that a context belongs to. */
export function runBehind(ctx: PublicContext | undefined): Run | undefined {
  return (ctx as Context | undefined)?._run as Run | undefined;
}
