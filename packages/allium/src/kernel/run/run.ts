/** A run under way: what the loop, the contexts and the layers share. */

import { Cells } from '../context/cells.js';
import { type Context, type ModelContext, type RunContext, SeamCall } from '../context/context.js';
import type { RequestParts } from '../context/model-context.js';
import type { Meters } from '../context/usage-meters.js';
import { type RunEvents, runEvents } from '../events/run-events.js';
import { Judgements } from '../guards/judgements.js';
import { RequestGate } from '../guards/request-gate.js';
import { toldBeside } from '../guards/told-beside.js';
import { ActiveTime } from '../journal/active-time.js';
import type { BoundedStore } from '../journal/bounded-store.js';
import type { History } from '../journal/history.js';
import { type Expense, type Journal, together } from '../journal/journal.js';
import type { OpenRun } from '../journal/journaled-run.js';
import type { SessionState } from '../journal/session-state.js';
import type { ComposedPlan } from '../layers/onion.js';
import type { Clock } from '../lib/clock.js';
import { type Attribution, attribute, codeOf } from '../lib/errors.js';
import { type Scope, supervised, untilAborted } from '../lib/scope.js';
import {
  type AssistantContent,
  isNothing,
  type Message,
  type Metadata,
  type ModelResponse,
  NOTHING,
  UNKNOWN_USAGE,
  type Usage,
} from '../messages/messages.js';
import { type Model, modelName, type Price } from '../messages/model.js';
import type { Budget, Reservation } from '../model/budget.js';
import { generate } from '../model/generate.js';
import type { ModelCall } from '../model/model-call.js';
import type { Calling } from '../model/model-run.js';
import type { GenerateRequest } from '../protocol/contexts.js';
import type { AgentEvent } from '../protocol/events.js';
import type { GuardVerdict } from '../protocol/guard.js';
import type { Limits, SessionLimits } from '../protocol/limits.js';
import type { Change, StateReader } from '../protocol/result.js';
import type { DeclaredOptions, QueueModes } from '../protocol/run-options.js';
import { type ControlSignal, controlKind } from '../protocol/signals.js';
import type { CellChange } from '../protocol/state.js';
import type { Awaitable, EntryDraft, Posted, RequestHandler } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { GivenUp } from '../tools/end-children.js';
import type { ToolsRun } from '../tools/tools-run.js';
import { carry } from './ended.js';
import { type RunAgent, runBehind } from './run-agent.js';
import type { Start } from './start-run.js';

type Content = readonly AssistantContent[];

const MAX_CHANGES = 1000;

export class Run implements ToolsRun {
  readonly agent: RunAgent;
  readonly plan: ComposedPlan;
  readonly state: SessionState;
  readonly sessionId: string;
  readonly runId: string;
  /** What ids of messages begin with. */ private readonly prefix: string;
  readonly tenant: string | undefined;
  readonly depth: number;
  readonly scope: Scope;
  readonly budget: Budget;
  readonly limits: Limits;
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly resumed: boolean;
  /** It began without an input, to go on with the history and with what waits. */
  readonly continues: boolean;
  readonly compacts: boolean;
  readonly queue: QueueModes;
  readonly store: BoundedStore;
  readonly forgets: boolean;
  readonly allowPlanChange: boolean;
  /** Calls under way, and runs of sub-agents: who is told when the run is stopped. */
  readonly inside = new Set<{ halt(signal: unknown, by: string | undefined): void }>();
  /** What sub-agents that have ended left in their cells, by the id of their session. */
  childStates: Map<string, StateReader> | undefined;
  /** Runs of sub-agents that have not ended, by the place of their call. */
  children: Map<string, Promise<unknown>> | undefined;
  /** Until this process went on with it, somebody was asked about its calls, so none of them had begun. */
  asked = false;
  /** Calls that may have started sub-agents, and were answered without them. */
  givenUp: GivenUp | undefined;
  /** What nobody had taken over when the inbox was last looked at. */
  posted: readonly Posted[] = NOTHING;
  readonly history: History;
  readonly cells: Cells;
  readonly watched: boolean;
  readonly onRequest: RequestHandler | undefined;
  /** The latch of everything that is not inside a model or tool call. */
  readonly call: SeamCall;
  readonly changes: Change[] = [];
  readonly judgements = new Judgements(this);
  /** What transforms made of responses, by the content they were made from. */
  stages: WeakMap<Content, { readonly ctx: ModelContext; readonly response: ModelResponse }> | undefined;
  turn = 0;
  /** Who counts what is used; to begin with, whoever does so for the parent. */
  meters: Meters | undefined;
  /** Run layers come before the loop, and one may end without it. */
  loop: 'to come' | 'begun' | 'given up' = 'to come';
  /** Its end is told: no event follows, whatever was left running in it. */
  over = false;
  /** What the model calls of a turn start from. */
  request: RequestParts;
  output: unknown;
  /** The context of model calls that no middleware sees. */
  plainCall: Calling | undefined;
  /** A finished attempt, to be used again. */
  spareCall: ModelCall | undefined;
  /** What the caller passed for middleware. */
  options: DeclaredOptions;
  /** The run whose tool started this one. */ private readonly parent: Run | undefined;
  readonly journal: Journal;
  readonly events: RunEvents;
  private restarts: Set<string> | undefined;
  private named: { readonly model: Model; readonly name: string } | undefined;
  private unjournaled: Expense[] = [];
  private gate: RequestGate | undefined;
  /** Of most runs nobody wants to know. */
  private time: ActiveTime | undefined;
  /** Requests without calls that lack a result and results that lack a call. */
  paired: WeakSet<readonly Message[]> | undefined;

  constructor(
    start: Start,
    plan: ComposedPlan,
    journal: Journal,
    limits: Limits,
    budget: Budget,
    metadata: Metadata,
  ) {
    const { agent, options } = start;
    this.options = start.declared;
    this.parent = runBehind(options.parent);
    this.journal = journal;
    this.events = runEvents(start.queue, agent._feeds);
    this.agent = agent;
    this.plan = plan;
    this.state = start.state;
    this.sessionId = this.state.sessionId;
    this.runId = this.open.runId;
    this.prefix = `${this.runId}.`;
    this.tenant = start.tenant;
    this.depth = this.parent ? this.parent.depth + 1 : 0;
    this.scope = start.scope;
    this.call = new SeamCall(this, this.scope);
    this.budget = budget;
    this.limits = limits;
    this.metadata = metadata;
    this.clock = agent.clock;
    this.resumed = !start.input;
    this.continues = start.input?.length === 0;
    this.compacts = start.compacts ?? false;
    this.queue = options.queue ? { ...agent.queue, ...options.queue } : agent.queue;
    this.onRequest = options.onRequest ?? agent._onRequest;
    this.store = start.store;
    this.forgets = start.forgets;
    this.allowPlanChange = options.allowPlanChange ?? false;
    this.history = this.state.history;
    this.cells = new Cells(plan.cells, this.state, this.open);
    this.watched = this.events.watched;
    this.request = agent.request(plan, 1);
    this.meters = this.parent?.meters;
    this.parent?.inside.add(this);
    this.turn = this.open.turns;
    if (limits.timeoutMs !== undefined) this.time = this.activeTime();
  }

  private activeTime(): ActiveTime {
    return new ActiveTime(this.clock, this.open.activeMs, this.limits.timeoutMs);
  }

  /**
   * A stop was latched somewhere in the run. Everything in it hears of that at once, sub-agents included: nothing begins
   * any more, and whoever waits to begin waits no longer.
   */
  halt(signal: unknown, by: string | undefined): void {
    // Latching it comes back here.
    if (this.call.latched === undefined) this.call.latch(signal, by);
    else for (const one of this.inside) one.halt(signal, by);
  }

  /** Remembers what of the history the guards of requests have judged. */
  get requestGate(): RequestGate {
    this.gate ??= new RequestGate();
    return this.gate;
  }

  /** Its end is told: no event follows, whatever was left running in it. */
  end(): void {
    this.over = true;
    this.parent?.inside.delete(this);
  }

  get open(): OpenRun {
    return this.state.open!;
  }
  get parentRunId(): string | undefined {
    return this.parent?.runId;
  }

  nameAt(position: number): string | undefined {
    return this.plan.middleware[position]?.name;
  }

  messageId(number: number): string {
    return this.prefix + number;
  }

  newMessages(): readonly Message[] {
    return this.history.from(this.open.from);
  }

  // ── Events and journal ─────────────────────────────────────────────────────────────────────────────────────

  emit(event: AgentEvent): void {
    this.events.emit(event);
  }

  emitCustom(name: string, given: unknown, by: string | undefined): void {
    if (!this.watched || this.over) return;
    const data = given === undefined ? given : toldBeside(given, this);
    this.emit({
      type: 'custom',
      runId: this.runId,
      sessionId: this.sessionId,
      name,
      ...(by && { by }),
      ...(data !== undefined && { data }),
    });
  }

  /** A promise while the consumer is behind; the time it takes does not count as the run's. */
  pressure(): Promise<void> | undefined {
    const wait = this.events.pressure();
    return wait === undefined ? undefined : this.waiting(wait);
  }

  /** Apart from `pressure`, which is asked all along a stream: a function that captures something is never free. */
  private waiting(wait: Promise<void>): Promise<void> {
    // An abort ends the wait; whoever waited meets it where it goes on.
    return this.paused(() => untilAborted(wait, this.scope).catch(() => {}));
  }

  /** Notes who threw a value that is no object. What a model passes on belongs to the transform that threw it. */
  _raised(value: unknown, by: Attribution, call: SeamCall = this.call): void {
    const noted = call.raised;
    const passedOn = by.attempts !== undefined && noted?.by.middleware !== undefined && noted.value === value;
    const raised = passedOn ? noted : { value, by };
    call.raised = raised;
    this.call.raised = raised;
  }

  /** Notes that a middleware acted. */
  note(by: string, what: string, verdict?: GuardVerdict): void {
    if (this.changes.length < MAX_CHANGES)
      this.changes.push({ turn: this.turn, by, what, ...(verdict && { verdict }) });
  }

  /** Tells observers what a guard said, and notes it. */
  report(verdict: GuardVerdict, what: string): void {
    this.note(verdict.guard, what, verdict);
    const { runId, sessionId } = this;
    if (this.watched && !this.over) this.emit({ type: 'guard_verdict', runId, sessionId, verdict });
  }

  /** Notes what a middleware says of itself, without what guards find in it. */
  noteSaid(by: string, what: string): void {
    this.note(by, toldBeside(what, this, by) ?? 'said something that may not be told');
  }

  /** Writes entries together with the state changes that wait, and tells of those. `how`: see `Journal`. */
  append(entries: readonly EntryDraft[], how: 'append' | 'appendLate' | 'end' = 'append'): Awaitable<void> {
    const { journal } = this;
    // What waits in cells is not taken along by an append that is refused.
    if (how !== 'end') journal.check();
    const due = this.time?.isDue(this.open.activeMs);
    if (!this.hasUnwritten && !due) return journal[how](entries);
    const changes = this.cells.commit();
    const all = together(this.runId, due ? [this.active(), ...entries] : entries, changes, this.unjournaled);
    this.unjournaled = [];
    const wait = journal[how](all);
    if (wait) return wait.then(() => this.tellChanges(changes));
    if (this.watched) this.tellChanges(changes);
  }

  /** What time limits count from in the next part of the run. */
  active(): EntryDraft {
    return { type: 'active', runId: this.runId, ms: this.activeMs };
  }

  appendOne(entry: EntryDraft): Awaitable<void> {
    return this.hasUnwritten || this.time !== undefined
      ? this.append([entry])
      : this.journal.appendOne(entry);
  }

  private tellChanges(changes: readonly CellChange[]): void {
    const { runId, sessionId } = this;
    for (const { key: cell, value } of this.watched ? changes : [])
      this.emit({ type: 'state_change', runId, sessionId, cell, value });
  }

  /** Notes that it was the store that failed. */
  ofStore(error: unknown): unknown {
    if (codeOf(error) === undefined) attribute(error, { hook: 'store' }, this);
    return error;
  }

  /** Is this why nothing more can be written? */
  isOfStore(error: unknown): boolean {
    return error !== undefined && this.journal.broken === error;
  }

  /** Nobody here knows how far it got: from here on nothing is written, and it fails with this and can be gone on with. */
  surrender(error: unknown): unknown {
    this.journal.broken ??= error;
    return error;
  }

  /** The same where a result may not be written yet: what a tool did is not in doubt because of it. */
  async lose(error: unknown): Promise<never> {
    await this.journal.settleLate();
    throw this.surrender(this.ofStore(error));
  }

  /** A call gets no result of its own. The last batch is the only one that can have such calls. */
  giveUp(messageId: string, index: number): void {
    this.givenUp = { messageId, calls: [...(this.givenUp?.calls ?? []), index] };
  }

  get hasUnwritten(): boolean {
    return this.cells.dirty || this.unjournaled.length > 0;
  }

  // ── Calls ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Lets work wind down when the run is aborted; does not wait for code that ignores its signal. */
  supervise<T>(work: PromiseLike<T>, graceMs = this.agent.teardownTimeoutMs): Promise<T> {
    return supervised(work, this.scope, this.clock.setTimer, graceMs);
  }

  /** Time spent in here is not active time, of the parent neither. */
  paused<T>(wait: () => Promise<T>): Promise<T> {
    const { parent } = this;
    this.time ??= this.activeTime();
    return this.time.paused(() => (parent ? parent.paused(wait) : wait()));
  }

  get isPaused(): boolean {
    return this.time?.isPaused ?? false;
  }

  /** How long the run has not been active, a pause under way included. */
  get pausedMs(): number {
    return this.time?.pausedMs ?? 0;
  }

  /** How long it has been active, where its time is limited. */
  get activeMs(): number {
    return this.time?.ms ?? 0;
  }

  /** Replaces a reservation by what a call really used. The usage of the message that is kept is journaled with it. */
  settle(price: Price | undefined, reservation: Reservation | undefined, usage: Usage): void {
    const before = this.budget.costUsd;
    this.budget.settle(price, reservation, usage);
    // What is not known stays so: that is written once.
    if (usage === UNKNOWN_USAGE ? before === undefined : isNothing(usage)) return;
    const after = this.budget.costUsd;
    const spent = {
      usage,
      costUsd: before === undefined || after === undefined ? undefined : after - before,
    };
    // A child has a journal of its own, but its parent has to remember the cost too.
    for (let run: Run | undefined = this; run; run = run.parent) run.unjournaled.push(spent);
  }

  /** The cost of the usage a message carries; it leaves the list of usage that belongs to no message. */
  claimUsage(usage: Usage | undefined): Expense | undefined {
    const { unjournaled } = this;
    for (let i = unjournaled.length - 1; i >= 0; i--) {
      if (unjournaled[i]!.usage !== usage) continue;
      return i === unjournaled.length - 1 ? unjournaled.pop() : unjournaled.splice(i, 1)[0];
    }
    return undefined;
  }

  /** A model call of a middleware's own. */
  generate(caller: Context, model: Model, request: GenerateRequest): Promise<ModelResponse> {
    return generate(this, caller, model, request);
  }

  /** `onError` may start a turn again once per middleware. */
  mayRestart(name: string): boolean {
    const key = `${this.turn}\n${name}`;
    this.restarts ??= new Set();
    if (this.restarts.has(key)) return false;
    this.restarts.add(key);
    return true;
  }

  /** A control signal crossed a boundary inside a call: it holds even if a layer further out swallows it. */
  cross(error: ControlSignal, ctx: Context, by = this.nameAt(ctx._position)): void {
    const kind = controlKind(error);
    if (kind === 'stop' || kind === 'suspend') ctx._latch(error, by);
  }

  /** Puts what there is of a result on the error that the run fails with. */
  carry(error: unknown, ctx: RunContext): void {
    carry(this, error, ctx);
  }

  // ── Small questions ────────────────────────────────────────────────────────────────────────────────────────

  /** The name of a model; most runs have one. */
  nameOf(model: Model): string {
    if (this.named?.model !== model) this.named = { model, name: modelName(model) };
    return this.named.name;
  }

  findTool(name: string, tools: readonly Tool[]): Tool | undefined {
    return tools === this.plan.tools
      ? this.plan.toolsByName.get(name)
      : tools.find((tool) => tool.name === name);
  }

  /** How many calls of the batch that begins now may run. */
  toolCallsLeft(): number {
    const { toolCalls = Number.POSITIVE_INFINITY } = this.limits;
    const { toolCalls: session = Number.POSITIVE_INFINITY } = this.agent.sessionLimits;
    const answered = this.open.batch?.answered ?? 0;
    return Math.min(toolCalls - this.open.toolCalls, session - this.state.toolCalls) + answered;
  }

  get sessionLimits(): SessionLimits {
    return this.agent.sessionLimits;
  }
}
