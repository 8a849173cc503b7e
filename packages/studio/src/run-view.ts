/** One run, as the page shows it: its conversation, and a bar of the waterfall for everything that took time. */
import {
  type Entry,
  type Message,
  type PendingRequest,
  readTrace,
  type TraceRecord,
  textOf,
  toolCallsOf,
} from 'allium';
import { cutText, oneLine, sizeOf } from './cut.js';
import { actsOf, callsOf } from './received.js';
import type { Sources } from './sources.js';
import { addEntry, rowOf, type SessionFold } from './summaries.js';
import { agentOf, sourceOf } from './traces.js';
import type { CallRow, MessageItem, RunRow, RunView, SpanRow, SpanStatus } from './wire.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type OpenSpan = Mutable<SpanRow>;

/** Sub-agents within sub-agents that are drawn; deeper ones have a page of their own. */
const DEPTH = 3;
/** Sub-agents of a run that are drawn. */
const AGENTS = 50;

/** The entries of one run, and those of the session's journal that it needs besides. */
function entriesOfRun(entries: readonly Entry[], runId: string): readonly Entry[] {
  return entries.filter((entry) => 'runId' in entry && entry.runId === runId);
}

export async function viewRun(
  sources: Sources,
  sessionId: string,
  runId: string,
): Promise<Omit<RunView, 'questions'> & { readonly requests: readonly PendingRequest[] }> {
  const all = await sources.read(sessionId, 1);
  const entries = entriesOfRun(all, runId);
  const builder = new ViewBuilder(sessionId, entries);
  const [start] = entries;
  if (start?.type !== 'run_start') throw new RunUnknown(sessionId, runId);
  const trace = readTrace(sessionId, all, runId);
  const traced = withAttempts(builder.spans, trace?.records ?? []);
  const spans = await withAgents(sources, sessionId, traced, 0);
  return {
    row: summaryOf(sessionId, all, runId),
    plan: start.plan,
    ...(start.metadata !== undefined && { metadata: start.metadata }),
    items: builder.items,
    spans,
    acts: actsOf(trace?.records ?? []),
    calls: callsOf(trace, builder.calls),
    traced: trace !== undefined,
    requests: [...builder.requests.values()],
  };
}

export class RunUnknown extends Error {
  override readonly name = 'RunUnknown';
  constructor(sessionId: string, runId: string) {
    super(`Session "${sessionId}" has no run "${runId}".`);
  }
}

function summaryOf(sessionId: string, entries: readonly Entry[], runId: string): RunRow {
  const fold: SessionFold = { sessionId, child: false, seq: 0, runs: [] };
  for (const entry of entries) addEntry(fold, entry);
  const run = fold.runs.find((one) => one.runId === runId);
  if (!run) throw new RunUnknown(sessionId, runId);
  return rowOf(fold, run);
}

/** Goes through the journal of a run once. */
class ViewBuilder {
  readonly items: MessageItem[] = [];
  readonly spans: OpenSpan[] = [];
  readonly calls: CallRow[] = [];
  readonly requests = new Map<string, PendingRequest>();
  /** Where the next model call begins: when everything before it had been written. */
  private ready = 0;
  private turn = 0;
  private turnSpan: OpenSpan | undefined;
  private readonly tools = new Map<string, OpenSpan>();
  private readonly waits = new Map<string, OpenSpan>();
  private ended = false;
  private afterAgent = false;

  constructor(
    private readonly sessionId: string,
    entries: readonly Entry[],
  ) {
    for (const entry of entries) {
      this.add(entry);
      if (entry.type === 'message' || entry.type === 'tool_finished')
        this.afterAgent = agentOf(entry) !== undefined;
    }
    if (this.ended) this.close(entries.at(-1)?.at ?? 0);
  }

  private add(entry: Entry): void {
    switch (entry.type) {
      case 'run_start':
        this.ready ||= entry.at;
        return;
      case 'message':
        this.addMessage(entry);
        return;
      case 'tool_started': {
        const span = this.tools.get(entry.callId);
        if (span) span.start = entry.at;
        return;
      }
      case 'tool_finished':
        this.finishTool(entry);
        return;
      case 'usage':
        // What a sub-agent spent is shown where it runs.
        if (!this.afterAgent) this.addAttempt(entry);
        return;
      case 'request':
        this.ask(entry);
        return;
      case 'answer':
        this.answer(entry);
        return;
      case 'run_end':
        this.ended = entry.status !== 'suspended';
    }
  }

  private addMessage(entry: Entry & { type: 'message' }): void {
    const { message, at } = entry;
    const answers = message.role === 'assistant' && !entry.seeded;
    if (answers) this.beginTurn(entry);
    this.items.push(itemOf(entry, message, this.turn));
    this.ready = at;
  }

  private beginTurn(entry: Entry & { type: 'message' }): void {
    const { message, at } = entry;
    if (message.role !== 'assistant') return;
    this.turn++;
    const { turn } = this;
    const start = Math.min(this.ready, at);
    const common = { turn, messageId: message.id, status: 'ok' as const };
    this.turnSpan = {
      ...common,
      id: `t${turn}`,
      kind: 'turn',
      depth: 0,
      label: `Turn ${turn}`,
      start,
      end: at,
    };
    const { usage } = message;
    const tokens = usage ? `${usage.inputTokens} → ${usage.outputTokens} tokens` : undefined;
    const model: OpenSpan = {
      ...common,
      id: `m${turn}`,
      kind: 'model',
      depth: 1,
      label: message.model ?? 'model',
      start,
      end: at,
      ...(tokens && { note: tokens }),
    };
    this.spans.push(this.turnSpan, model);
    this.calls.push({
      n: this.calls.length + 1,
      turn,
      attempt: 1,
      messageId: message.id,
      ...(message.model !== undefined && { model: message.model }),
    });
    for (const call of toolCallsOf(message)) {
      const span: OpenSpan = {
        ...common,
        id: `c${turn}.${call.id}`,
        kind: 'tool',
        depth: 1,
        label: call.name,
        note: oneLine(call.arguments, 80),
        start: at,
        status: 'open',
      };
      this.tools.set(call.id, span);
      this.spans.push(span);
    }
  }

  private finishTool(entry: Entry & { type: 'tool_finished' }): void {
    const { message, at } = entry;
    const span = this.tools.get(message.toolCallId);
    if (span) {
      span.end = at;
      span.status = message.isError ? 'error' : 'ok';
      const agent = agentOf(entry);
      if (agent?.startsWith(`${this.sessionId}/`)) span.sessionId = agent;
    }
    if (this.turnSpan) this.turnSpan.end = Math.max(at, this.turnSpan.end ?? 0);
    this.items.push(itemOf({ seq: 0, at }, message, this.turn));
    this.ready = at;
  }

  /** Tokens without a message: an attempt that was given up, or a call that middleware made for itself. */
  private addAttempt({ usage, at, seq }: Entry & { type: 'usage' }): void {
    this.spans.push({
      id: `a${seq}`,
      kind: 'attempt',
      depth: 1,
      label: 'Another call',
      note: `${usage.inputTokens} → ${usage.outputTokens} tokens: given up, refused, or made by middleware`,
      start: Math.min(this.ready, at),
      end: at,
      status: 'error',
      turn: this.turn + 1,
    });
    this.ready = at;
  }

  private ask({ request, replaces = [], at }: Entry & { type: 'request' }): void {
    for (const id of replaces) this.endWait(id, at, 'error');
    this.requests.set(request.id, request);
    const wait: OpenSpan = {
      id: `w${request.id}`,
      kind: 'wait',
      depth: 2,
      label: request.title ?? `May ${request.toolName} run?`,
      ...(request.by !== undefined && { note: `asked by ${request.by}` }),
      start: at,
      status: 'waiting',
      turn: this.turn,
      ...(this.turnSpan?.messageId !== undefined && { messageId: this.turnSpan.messageId }),
    };
    this.waits.set(request.id, wait);
    const tool = this.tools.get(request.callId);
    if (tool) this.spans.splice(this.spans.indexOf(tool) + 1, 0, wait);
    else this.spans.push(wait);
  }

  private answer({ requestId, decision, at }: Entry & { type: 'answer' }): void {
    const wait = this.waits.get(requestId);
    if (wait && wait.end === undefined)
      wait.note = [wait.note, `answer: ${decision.type}`].filter(Boolean).join(', ');
    this.endWait(requestId, at, decision.type === 'reject' ? 'error' : 'ok');
  }

  private endWait(id: string, at: number, status: SpanStatus): void {
    this.requests.delete(id);
    const wait = this.waits.get(id);
    if (!wait || wait.end !== undefined) return;
    wait.end = at;
    wait.status = status;
  }

  /** A run that has ended leaves nothing open. */
  private close(at: number): void {
    for (const span of this.spans) {
      if (span.end !== undefined) continue;
      span.end = at;
      if (span.status !== 'ok') span.status = 'error';
    }
    this.requests.clear();
  }
}

/** Model calls in the trace that no message belongs to: failed attempts, and calls of middleware. */
function withAttempts(spans: readonly SpanRow[], records: readonly TraceRecord[]): readonly SpanRow[] {
  const calls = records.filter(({ sent, error, caller }) => sent && (error || caller !== undefined));
  const tried = withToolAttempts(spans, records);
  if (calls.length === 0) return tried;
  const out = tried.filter(({ kind, id }) => kind !== 'attempt' || id.startsWith('r'));
  for (const { n, at, ms, turn, attempt = 1, error, caller } of calls) {
    const span: SpanRow = {
      ...{ id: `r${n}`, kind: 'attempt', depth: 1, turn, start: at, end: at + ms },
      label: caller === undefined ? `Attempt ${attempt}` : `Call of ${caller}`,
      status: error ? 'error' : 'ok',
      ...(error && { note: oneLine(error.message ?? error.name, 80) }),
    };
    const next = out.findIndex((one) => one.turn === turn && one.kind === 'model');
    if (next < 0) out.push(span);
    else out.splice(next, 0, span);
  }
  return out;
}

/** Below each tool call that was made more than once: its attempts. */
function withToolAttempts(spans: readonly SpanRow[], records: readonly TraceRecord[]): readonly SpanRow[] {
  return spans.flatMap((span) => {
    if (span.kind !== 'tool') return span;
    const tries = records.filter(
      ({ by, hook, turn, callId }) => by === 'tool' && hook === 'execute' && span.id === `c${turn}.${callId}`,
    );
    if (tries.length < 2) return span;
    const attempts = tries.map(
      ({ n, at, ms, error }, index): SpanRow => ({
        ...{ id: `r${n}`, kind: 'attempt', depth: span.depth + 1, turn: span.turn, start: at, end: at + ms },
        label: `Attempt ${index + 1}`,
        status: error ? 'error' : 'ok',
        ...(error && { note: oneLine(error.message ?? error.name, 80) }),
        ...(span.messageId !== undefined && { messageId: span.messageId }),
      }),
    );
    return [span, ...attempts];
  });
}

/** The bars, and below the call of each sub-agent its own. */
async function withAgents(
  sources: Sources,
  sessionId: string,
  spans: readonly SpanRow[],
  level: number,
): Promise<readonly SpanRow[]> {
  if (level >= DEPTH || !spans.some((span) => span.sessionId !== undefined)) return spans;
  const out: SpanRow[] = [];
  let drawn = 0;
  for (const span of spans) {
    out.push(span);
    if (span.sessionId === undefined || span.sessionId === sessionId || drawn++ >= AGENTS) continue;
    const entries = await sources.read(span.sessionId, 1);
    const runs = entries.flatMap((entry) => (entry.type === 'run_start' ? [entry.runId] : []));
    for (const runId of new Set(runs)) {
      const builder = new ViewBuilder(span.sessionId, entriesOfRun(entries, runId));
      const inner = await withAgents(sources, span.sessionId, builder.spans, level + 1);
      out.push(...inner.map((one) => inside(span, one, runId)));
    }
  }
  return out;
}

function inside(call: SpanRow, span: SpanRow, runId: string): SpanRow {
  const { messageId: _, ...rest } = span;
  return {
    ...rest,
    id: `${call.id}/${span.id}`,
    depth: call.depth + 1 + span.depth,
    turn: call.turn,
    sessionId: span.sessionId ?? call.sessionId!,
    runId: span.runId ?? runId,
    ...(call.messageId !== undefined && { messageId: call.messageId }),
  };
}

function itemOf(
  { seq, at, costUsd }: { readonly seq: number; readonly at: number; readonly costUsd?: number },
  message: Message,
  turn: number,
): MessageItem {
  const { id, role, content } = message;
  const source = sourceOf(message.metadata);
  const media = content.flatMap((part) =>
    part.type === 'image' || part.type === 'file'
      ? [`${part.type}, ${part.mimeType}, ${sizeOf(part.data)}`]
      : [],
  );
  const common = {
    ...{ id, seq, role, at, turn, ...cutText(textOf(message)) },
    ...(media.length > 0 && { media }),
    ...(source !== undefined && { source }),
  };
  if (message.role === 'tool') return { ...common, toolName: message.toolName, isError: message.isError };
  if (message.role === 'user') return common;
  const calls = toolCallsOf(message).map(({ id, name, arguments: args }) => {
    const { text, cut } = cutText(args);
    return { id, name, arguments: text, ...(cut !== undefined && { cut }) };
  });
  const thinking = message.content
    .flatMap((part) => (part.type === 'thinking' ? [part.text] : []))
    .join('\n');
  return {
    ...common,
    ...(calls.length > 0 && { calls }),
    ...(thinking !== '' && { thinking: cutText(thinking).text }),
    ...(message.model !== undefined && { model: message.model }),
    ...(message.usage && { usage: message.usage }),
    ...(costUsd !== undefined && { costUsd }),
    stopReason: message.stopReason,
  };
}

/** A message of a run in full, as text. */
export async function wholeMessage(sources: Sources, sessionId: string, messageId: string): Promise<unknown> {
  for (const entry of await sources.read(sessionId, 1)) {
    if (entry.type !== 'message' && entry.type !== 'tool_finished') continue;
    if (entry.message.id === messageId) return entry.message;
  }
  return undefined;
}
