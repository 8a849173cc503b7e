/** Records one run: who did what, what that changed and how long it took. */

import { type Context, ModelContext, ToolContext } from '../context/context.js';
import type { Recording, RunPort } from '../context/run-port.js';
import { withheldMessages, withheldText } from '../guards/guard-model-calls.js';
import { precise, rounded } from '../lib/clock.js';
import type { Message, ModelResponse } from '../messages/messages.js';
import type { ModelRequest } from '../messages/model.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { GuardVerdict } from '../protocol/guard.js';
import type { Seam } from '../protocol/plan.js';
import { controlKind } from '../protocol/signals.js';
import { type Decision, ENTRY_VERSION, type EntryBody, type EntryDraft } from '../protocol/store.js';
import {
  type HookTotal,
  type SentRequest,
  TRACE_VERSION,
  type TraceAct,
  type TraceRecord,
} from '../protocol/trace.js';
import { RequestWriter } from './request-writer.js';
import { Telling, WITHHELD } from './telling.js';

/** A hook of the plan. */
export interface Slot {
  readonly index: number;
  readonly by: string;
  readonly hook: string;
  readonly seam?: Seam;
  /** Identifies it among the steps that make requests. */
  readonly step: string;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Stored = readonly (EntryBody & { readonly type: 'trace' })[];

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
  private readonly all: Writable<TraceRecord>[];
  /** What model calls sent while guards still judged the input. Recorded once they have allowed it. */
  private unjudged: { readonly record: Writable<TraceRecord>; readonly sent: SentRequest }[] = [];
  private count: number;
  /** How many records the journal has. */
  private written: number;
  private readonly calls: number[];
  private readonly times: number[];
  /** Totals of the parts of the run before a resume. */
  private readonly earlier: readonly HookTotal[];
  /** The index of the last record by each name. Until it is written, a description can be added. */
  private readonly latest = new Map<string, number>();
  /** The last value of `now()`. */
  private read = 0;
  private hasOwnPrompt = false;
  /** How long guards have taken since their last verdict. */
  private readonly guardTimes = new Map<string, number>();

  /** `keeps`: the records are written to the journal. */
  constructor(
    private readonly run: RunPort,
    private readonly slots: readonly Slot[],
    readonly keeps: boolean,
    before: Stored,
  ) {
    this.all = before.flatMap(({ records }) => records);
    this.written = this.all.length;
    this.count = this.all.reduce((most, { n }) => Math.max(most, n), 0);
    this.earlier = before.flatMap(({ totals = [] }) => totals);
    this.calls = slots.map(() => 0);
    this.times = slots.map(() => 0);
    this.telling = new Telling(run);
    this.requests = new RequestWriter(run, this.telling, keysIn(this.all));
  }

  get records(): readonly TraceRecord[] {
    if (this.unjudged.length > 0 && !this.run.pendingInput) {
      for (const { record, sent } of this.unjudged) record.sent = sent;
      this.unjudged = [];
    }
    return this.all;
  }

  now(): number {
    this.read = precise(this.run.clock);
    return this.read;
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
    this.calls[index]!++;
    this.times[index]! += ms;
  }

  /** A guard was asked. Its verdict, if it has one, follows. */
  judged(slot: Slot, ms: number): void {
    this.spent(slot, ms);
    this.guardTimes.set(slot.by, (this.guardTimes.get(slot.by) ?? 0) + ms);
  }

  /** Called right after `now()`. `started`: when it began, by `now()`. `ms`: its own time. */
  add(
    slot: Pick<Slot, 'by' | 'hook' | 'seam'>,
    did: TraceAct,
    ctx: Context | undefined,
    started: number,
    ms: number,
    more: Partial<TraceRecord>,
    n = this.next(),
  ): Writable<TraceRecord> {
    const { by, hook, seam } = slot;
    const at = Math.round(this.run.clock.now() - (this.read - started));
    const { turn } = this.run;
    const own = rounded(ms);
    let record: Writable<TraceRecord>;
    // Made whole: objects that grow one field at a time cost twice the memory.
    if (ctx instanceof ToolContext) {
      const { id: callId, name: toolName } = ctx.toolCall;
      record = { n, at, ms: own, turn, by, hook, did, callId, toolName, attempt: ctx.attempt };
    } else if (ctx instanceof ModelContext)
      record = { n, at, ms: own, turn, by, hook, did, attempt: ctx.attempt };
    else record = { n, at, ms: own, turn, by, hook, did };
    if (seam) record.seam = seam;
    Object.assign(record, more);
    this.latest.set(by, this.all.push(record) - 1);
    return record;
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
    const record = this.unwritten(by) ?? (by === 'kernel' ? this.unwritten('tool') : undefined);
    if (record && record.turn === this.run.turn && record.did !== 'called') {
      record.what = record.what === undefined ? what : `${record.what}; ${what}`;
    } else this.add({ by, hook: 'note' }, did, undefined, this.now(), 0, { what });
  }

  /** A record that is written can't change any more. */
  private unwritten(by: string): Writable<TraceRecord> | undefined {
    const at = this.latest.get(by);
    return at === undefined || at < this.written ? undefined : this.all[at];
  }

  report(verdict: GuardVerdict, what: string, about: Context | undefined): void {
    const { guard: by, action } = verdict;
    const ms = this.guardTimes.get(by) ?? 0;
    this.guardTimes.delete(by);
    this.add({ by, hook: 'guard' }, GUARD_ACTS[action], about, this.now() - ms, ms, { what, verdict });
    this.latest.delete(by);
  }

  /** A model is called. Call the returned function when that has ended. */
  sends(
    ctx: ModelContext,
    request: ModelRequest,
    plain: boolean,
  ): (answer: ModelResponse | undefined, error?: unknown) => void {
    const { caller } = ctx._call;
    const name = caller && (this.run.nameAt((caller as Context)._position) ?? 'tool');
    if (!caller) this.ownPrompt();
    const n = this.next();
    // A guard's own call shows a model what may have to be removed.
    const { guarded } = ctx._call;
    const told = guarded ? request : withheldRequest(request);
    const sent = this.quietly(() => this.requests.sent(n, ctx, told, plain && guarded, name));
    const isJudged = !this.run.pendingInput;
    const { messageId } = (ctx._call.live ?? {}) as { readonly messageId?: string };
    const started = this.now();
    return (_answer, error) => {
      const about: Partial<Writable<TraceRecord>> = { attempt: ctx._call.attempts };
      if (sent) about.sent = isJudged ? sent : withheldSent(sent);
      if (messageId) about.messageId = messageId;
      if (name) about.caller = name;
      const record = this.ended(MODEL, ctx, started, about, error, n);
      if (sent && !isJudged) this.unjudged.push({ record, sent });
    };
  }

  /** A question about a call was answered. A call that starts over gets the same answer again. */
  decided(ctx: ToolContext, decision: Decision): void {
    const { type } = decision;
    const { id } = ctx.toolCall;
    if (
      this.all.some((one) => one.callId === id && one.by === 'human' && one.changes?.decision?.type === type)
    )
      return;
    const said = type === 'reject' ? decision.reason : undefined;
    const why = said && (this.quietly(() => this.telling.text(said)) ?? WITHHELD);
    const changes = { decision: { type, ...(why && { why }) } };
    this.add(HUMAN, ANSWERS[type], ctx, this.now(), 0, { changes });
  }

  /** A tool is executed. Call the returned function when that has ended. */
  executes(ctx: ToolContext): (result: ToolResult | undefined, error?: unknown) => void {
    const started = this.now();
    const n = this.next();
    return (result, error) => {
      const agentId = this.quietly(() => (Object(result?.details) as { agentId?: unknown }).agentId);
      const about: Partial<Writable<TraceRecord>> = { attempt: ctx._call.attempts };
      if (typeof agentId === 'string') about.agentId = agentId;
      this.ended(TOOL, ctx, started, about, error, n);
    };
  }

  private ended(
    slot: Pick<Slot, 'by' | 'hook' | 'seam'>,
    ctx: Context,
    started: number,
    about: Partial<Writable<TraceRecord>>,
    error: unknown,
    n: number,
  ): Writable<TraceRecord> {
    const ms = this.now() - started;
    const kind = error === undefined ? undefined : controlKind(error);
    const did = error === undefined ? 'called' : kind ? SIGNALS[kind] : 'failed';
    if (did === 'failed')
      about.error = this.quietly(() => this.telling.error(error, ctx)) ?? { name: 'Error' };
    return this.add(slot, did, ctx, started, ms, about, n);
  }

  // ── What is kept ───────────────────────────────────────────────────────────────────────────────────────────

  get hasUnwritten(): boolean {
    return this.keeps && this.written < this.all.length;
  }

  /** Is anything left to write at the end of this part of the run? The next part continues from its totals. */
  get hasRest(): boolean {
    return this.hasUnwritten || (this.keeps && this.calls.some((calls) => calls > 0));
  }

  /** The records that the journal doesn't have yet, with the totals if the run, or this part of it, ends here. */
  entry(isEnd: boolean): EntryDraft | undefined {
    if (!this.hasUnwritten && !(isEnd && this.keeps)) return undefined;
    // A record that is written can't be withheld any more.
    if (this.run.pendingInput && !isEnd) return undefined;
    const records = this.records.slice(this.written);
    this.written = this.all.length;
    const { runId } = this.run;
    const entry = { v: ENTRY_VERSION, at: 0, type: 'trace' as const, runId, version: TRACE_VERSION, records };
    const totals = isEnd ? this.ownTotals() : [];
    return totals.length > 0 ? { ...entry, totals } : entry;
  }

  get totals(): readonly HookTotal[] {
    return summed([...this.earlier, ...this.ownTotals()]);
  }

  private ownTotals(): readonly HookTotal[] {
    return this.slots.flatMap(({ index, by, hook, seam }) => {
      const [calls, ms] = [this.calls[index]!, this.times[index]!];
      return calls > 0 ? [{ by, hook, ...(seam && { seam }), calls, ms: rounded(ms) }] : [];
    });
  }
}

function withheldRequest(request: ModelRequest): ModelRequest {
  const { messages, systemPrompt } = request;
  return { ...request, messages: withheldMessages(messages), systemPrompt: withheldText(systemPrompt) };
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

/** The totals of all parts of a run. */
export function summed(totals: readonly HookTotal[]): readonly HookTotal[] {
  const all = new Map<string, HookTotal>();
  for (const one of totals) {
    const key = `${one.by}\n${one.hook}\n${one.seam}`;
    const before = all.get(key);
    const sum = before && { ...one, calls: before.calls + one.calls, ms: rounded(before.ms + one.ms) };
    all.set(key, sum ?? one);
  }
  return [...all.values()];
}

function keysIn(records: readonly TraceRecord[]): number {
  return records.reduce((count, { changes, sent }) => {
    const added = [changes?.messages?.added, sent?.messages?.added];
    return added.reduce((sum, one) => sum + Object.keys(one ?? {}).length, count);
  }, 0);
}
