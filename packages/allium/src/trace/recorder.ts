/** Records one run: who did what, what that changed and how long it took. */

import {
  type Clock,
  type Context,
  type Decision,
  type GuardVerdict,
  type Message,
  type ModelContext,
  type ModelRequest,
  type ModelResponse,
  monotonic,
  type SentRequest,
  systemClock,
  type ToolContext,
  type ToolResult,
  type TraceAct,
  type TraceRecord,
} from '../index.js';
import {
  callerName,
  callFacts,
  controlKind,
  type RecordedRun,
  type Recording,
  type StoredTrace,
} from '../kit/index.js';
import { isModelCall, isToolCall } from './hook-call.js';
import { Act, Acts, type Difference, type Slot, TraceEntry } from './kept-acts.js';
import { RequestWriter } from './request-writer.js';
import { Telling, WITHHELD } from './telling.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const GUARD_ACTS: Readonly<Record<GuardVerdict['action'], TraceAct>> = {
  redact: 'rewrote',
  rewrite: 'rewrote',
  block: 'blocked',
  stop: 'stopped',
  warn: 'allowed',
  feedback: 'retried',
  ask: 'asked',
};

export class Recorder implements Recording {
  readonly telling: Telling;
  readonly requests: RequestWriter;
  readonly kept: Acts;
  /** What model calls sent while guards still judged the input. Recorded once they have allowed it. */
  private unjudged: { readonly act: Act; readonly sent: SentRequest }[] = [];
  private count: number;
  /** How many acts the journal has. */
  private written = 0;
  private readonly since: { readonly at: number };
  /** The value of `now()` at that time. */
  private start: number;
  /** When the layer that is now calling inward stopped its own work; otherwise 0. */
  leftAt = 0;
  private hasOwnPrompt = false;
  /** How long guards have taken since their last verdict. */
  private readonly guardTimes = new Map<string, number>();

  /** `keeps`: the records are written to the journal. */
  constructor(
    private readonly run: RecordedRun,
    slots: readonly Slot[],
    readonly keeps: boolean,
    stored: readonly StoredTrace[],
  ) {
    const before = stored.flatMap(({ records }) => records);
    const totals = stored.flatMap((entry) => entry.totals ?? []);
    this.kept = new Acts(before, totals, slots);
    this.since = { at: run.clock.now() };
    this.start = this.now();
    this.count = before.reduce((most, { n }) => Math.max(most, n), 0);
    this.telling = new Telling(run);
    this.requests = new RequestWriter(run, this.telling, keysIn(before));
  }

  private recordSent(): void {
    if (this.run.pendingInput) return;
    for (const { act, sent } of this.unjudged) act.add({ sent });
    this.unjudged = [];
  }

  now(): number {
    return precise(this.run.clock);
  }

  /** When something begins. If a layer calls it, that is when the layer's own time stopped, so the clock is read once. */
  started(): number {
    const { leftAt } = this;
    this.leftAt = 0;
    return leftAt || this.now();
  }

  /** The number of a new record, which later ones may refer to. */
  next(): number {
    return ++this.count;
  }

  /** Recording never fails a run: an invalid value is reported where the kernel checks it. */
  quietly<T>(record: () => T): T | undefined {
    try {
      return record();
    } catch {
      return undefined;
    }
  }

  /** A hook was called, whatever the outcome. */
  spent({ index }: Slot, ms: number): void {
    this.kept.spent(index, ms);
  }

  /** A guard was asked. Its verdict, if it has one, follows. */
  judged(slot: Slot, ms: number): void {
    this.spent(slot, ms);
    this.guardTimes.set(slot.by, (this.guardTimes.get(slot.by) ?? 0) + ms);
  }

  /** `started`: when it began, by `now()`. `ms`: its own time. */
  add(
    slot: Pick<Slot, 'by' | 'hook' | 'seam'>,
    did: TraceAct,
    ctx: Context | undefined,
    started: number,
    ms: number,
    more?: Partial<TraceRecord> | Difference,
    n = this.next(),
    attempt?: number,
  ): Act {
    const call = ctx && isToolCall(ctx) ? ctx.toolCall : undefined;
    const tried = attempt ?? (ctx && (isToolCall(ctx) || isModelCall(ctx)) ? ctx.attempt : 0);
    const after = Math.round(started - this.start);
    const own = Math.round(ms * 1000);
    const act = new Act(n, this.since, after, own, this.run.turn, slot, did, call, tried, more);
    this.kept.all.push(act);
    return act;
  }

  /** Records the agent's own system prompt, once. Others are stored as their difference from it. */
  ownPrompt(): void {
    if (this.hasOwnPrompt) return;
    this.hasOwnPrompt = true;
    const n = this.next();
    const own = this.requests.own(n, this.run.request.systemPrompt);
    if (own) this.add(OWN, 'added', undefined, this.now(), 0, { changes: { systemPrompt: own } }, n);
  }

  // ── What the kernel tells ──────────────────────────────────────────────────────────────────────────────────

  note(by: string, what: string, did: TraceAct): void {
    // The kernel notes that a tool failed.
    const act = this.latest(by) ?? (by === 'kernel' ? this.latest('tool') : undefined);
    if (act && act.did !== 'called') act.describe(what);
    else this.add({ by, hook: 'note' }, did, undefined, this.now(), 0, { what });
  }

  /** The last act by this name in this turn. One that is written can't change any more, and verdicts have a description. */
  private latest(by: string): Act | undefined {
    const { written } = this;
    const { all } = this.kept;
    const { turn } = this.run;
    for (let i = all.length - 1; i >= written && all[i]!.turn === turn; i--)
      if (all[i]!.by === by) return all[i]!.hook === 'guard' ? undefined : all[i];
    return undefined;
  }

  report(verdict: GuardVerdict, what: string, about: Context | undefined): void {
    const { guard: by, action } = verdict;
    const ms = this.guardTimes.get(by) ?? 0;
    this.guardTimes.delete(by);
    this.add({ by, hook: 'guard' }, GUARD_ACTS[action], about, this.now() - ms, ms, { what, verdict });
  }

  /** A model is called. Call the returned function when that has ended. */
  sends(
    ctx: ModelContext,
    request: ModelRequest,
    plain: boolean,
  ): (answer: ModelResponse | undefined, error?: unknown) => void {
    const name = ctx.caller && (callerName(ctx) ?? 'tool');
    if (!ctx.caller) this.ownPrompt();
    const n = this.next();
    const sent = this.quietly(() => this.requests.sent(n, ctx, request, plain, name));
    const isJudged = !this.run.pendingInput;
    const { messageId } = callFacts(ctx);
    const started = this.started();
    // The wall clock may have been set since the last call.
    this.start = started - (this.run.clock.now() - this.since.at);
    return (answer, error) => {
      const about: Partial<Writable<TraceRecord>> = {};
      if (sent) about.sent = isJudged ? sent : withheldSent(sent);
      if (messageId) about.messageId = messageId;
      if (name) about.caller = name;
      const act = this.ended(MODEL, ctx, started, about, { answer, error }, n, callFacts(ctx).attempts);
      if (sent && !isJudged) this.unjudged.push({ act, sent });
    };
  }

  /** A question about a call was answered. A call that starts over gets the same answer again. */
  decided(ctx: ToolContext, decision: Decision): void {
    const { type } = decision;
    if (this.actsOn(ctx, 'human').some(({ changes }) => changes?.decision?.type === type)) return;
    const said = type === 'reject' ? decision.reason : undefined;
    const why = said && (this.quietly(() => this.telling.text(said)) ?? WITHHELD);
    const edited = type === 'edit' && this.quietly(() => this.telling.changes(ctx.rawArgs, decision.args));
    const changes = { decision: { type, ...(why && { why }) }, ...(edited && { args: edited }) };
    this.add(HUMAN, ANSWERS[type], ctx, this.now(), 0, { changes });
  }

  /** What was done about a call, including before a resume. */
  actsOn({ toolCall: { id } }: ToolContext, name: string): readonly TraceRecord[] {
    const { before, all } = this.kept;
    const now = all.filter(({ by }) => by === name).map(({ record }) => record);
    return [...before, ...now].filter(({ by, callId }) => by === name && callId === id);
  }

  /** A tool is executed. Call the returned function when that has ended. */
  executes(ctx: ToolContext): (result: ToolResult | undefined, error?: unknown) => void {
    const started = this.started();
    const n = this.next();
    return (answer, error) => {
      const agentId = this.quietly(() => (Object(answer?.details) as { agentId?: unknown }).agentId);
      const about = typeof agentId === 'string' ? { agentId } : undefined;
      this.ended(TOOL, ctx, started, about, { answer, error }, n, callFacts(ctx).attempts);
    };
  }

  /** What came without an answer failed, also if nothing was thrown, as by `Promise.reject()`. */
  private ended(
    slot: Pick<Slot, 'by' | 'hook' | 'seam'>,
    ctx: Context,
    started: number,
    about: Partial<TraceRecord> | undefined,
    { answer, error: thrown }: { readonly answer: unknown; readonly error: unknown },
    n: number,
    attempt: number,
  ): Act {
    const ms = this.now() - started;
    if (answer !== undefined) return this.add(slot, 'called', ctx, started, ms, about, n, attempt);
    const kind = controlKind(thrown);
    if (kind) return this.add(slot, SIGNALS[kind], ctx, started, ms, about, n, attempt);
    const error = this.quietly(() => this.telling.error(thrown, ctx)) ?? { name: 'Error' };
    return this.add(slot, 'failed', ctx, started, ms, { ...about, error }, n, attempt);
  }

  // ── What is kept ───────────────────────────────────────────────────────────────────────────────────────────

  private get hasUnwritten(): boolean {
    return this.keeps && this.written < this.kept.all.length;
  }

  /** Is anything left to write at the end of this part of the run? The next part continues from its totals. */
  get hasRest(): boolean {
    return this.hasUnwritten || (this.keeps && !this.kept.isIdle);
  }

  /** The records that the journal doesn't have yet, with the totals if the run, or this part of it, ends here. */
  entry(isEnd: boolean): TraceEntry | undefined {
    if (this.unjudged.length > 0) this.recordSent();
    if (!this.hasUnwritten && !(isEnd && this.keeps)) return undefined;
    // A record that is written can't be withheld any more.
    if (this.run.pendingInput && !isEnd) return undefined;
    const { kept } = this;
    const from = this.written;
    this.written = kept.all.length;
    return new TraceEntry(this.run.runId, kept.all, from, isEnd ? kept.own : []);
  }
}

/** The same without its contents, which may quote input that guards refuse. */
function withheldSent({ messages, systemPrompt, tools, settings: _, ...rest }: SentRequest): SentRequest {
  const hidden = (message: Message): Message => ({
    id: message.id,
    role: 'user',
    content: [{ type: 'text', text: WITHHELD }],
  });
  const added = Object.entries(messages?.added ?? {}).map(([key, message]) => [key, hidden(message)]);
  return {
    ...rest,
    ...(messages && { messages: { ...messages, added: Object.fromEntries(added) } }),
    ...(systemPrompt && { systemPrompt: { ...systemPrompt, text: systemPrompt.text && WITHHELD } }),
    ...(tools && { tools: { names: tools.names } }),
  };
}

const OWN = { by: 'agent', hook: 'systemPrompt' };
const MODEL = { by: 'model', hook: 'stream', seam: 'model' as const };
const HUMAN = { by: 'human', hook: 'answer' };
const ANSWERS = { approve: 'allowed', edit: 'rewrote', reject: 'blocked', respond: 'answered' } as const;
const TOOL = { by: 'tool', hook: 'execute', seam: 'tool' as const };

/** What a hook did if it threw a signal. An abort is nothing it did. */
export const SIGNALS = { stop: 'stopped', suspend: 'asked', restart: 'retried', abort: 'stopped' } as const;

function keysIn(records: readonly TraceRecord[]): number {
  return records.reduce((count, { changes, sent }) => {
    const added = [changes?.messages?.added, sent?.messages?.added];
    return added.reduce((sum, one) => sum + Object.keys(one ?? {}).length, count);
  }, 0);
}

/** Like `monotonic`, with fractions of a millisecond if it is the system clock: for work that takes less than one. */
function precise(clock: Clock): number {
  return clock === systemClock ? timer.now() : monotonic(clock);
}

/** Kept here: in Node, the global `performance` is a getter. */
const timer = performance;
