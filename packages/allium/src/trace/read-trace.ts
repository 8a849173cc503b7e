/** Reads a trace: the records of a run, and what the model received at each call. */

import {
  AlliumError,
  type Entry,
  type EntryBody,
  type HookTotal,
  type Message,
  type RunTrace,
  type SentRequest,
  type Store,
  type ToolSpec,
  type TracedMessage,
  type TracedMessages,
  type TracedRequest,
  type TracedText,
  type TraceRecord,
} from '../index.js';
import { currentEntries, historyUpTo, invalidOption, type TracedRun } from '../kit/index.js';
import { fromHistory, type ListItem, readList } from './message-lists.js';
import { story } from './story.js';
import { WITHHELD } from './telling.js';
import { summed } from './totals.js';
import { isEqual } from './value-changes.js';

interface Records {
  readonly records: readonly TraceRecord[];
  readonly totals: readonly HookTotal[];
}

export class TraceReader implements RunTrace {
  readonly runId: string;
  readonly sessionId: string;
  private read: readonly TraceRecord[] | undefined;
  private known: Index | undefined;
  private readonly lists = new Map<number, readonly ListItem[]>();
  readonly #recorded: Records;
  readonly #history: readonly Message[];
  readonly #children: ReadonlyMap<string, RunTrace> | undefined;

  constructor(run: TracedRun, recorded: Records) {
    this.runId = run.runId;
    this.sessionId = run.sessionId;
    this.#recorded = recorded;
    this.#history = run.history;
    this.#children = run.children;
  }

  get records(): readonly TraceRecord[] {
    this.read ??= Object.freeze(this.#recorded.records.toSorted((a, b) => a.n - b.n));
    return this.read;
  }

  get totals(): readonly HookTotal[] {
    return this.#recorded.totals;
  }

  /** Made on demand: many traces are kept and never read. */
  private get index(): Index {
    this.known ??= indexOf(this.records);
    return this.known;
  }

  of(agentId: string): RunTrace | undefined {
    const own = this.#children?.get(agentId);
    if (own) return own;
    for (const child of this.#children?.values() ?? []) {
      const found = child.of(agentId);
      if (found) return found;
    }
    return undefined;
  }

  explain(messageId: string): string {
    return story(this, this.#history, messageId);
  }

  requestAt(n: number): TracedRequest {
    const record = this.index.records.get(n);
    if (!record?.sent) throw this.notSent(n);
    const { sent } = record;
    const items = sent.messages ? this.listOf(n) : fromHistory(this.#history, 0, sent.history);
    const chain = this.chainOf(sent.messages);
    const sentBefore = this.records.flatMap((one) =>
      one.sent && one.n <= n && one.caller === record.caller ? one.sent : [],
    );
    const latest = <K extends keyof SentRequest>(part: K): SentRequest[K] | undefined =>
      sentBefore.findLast((one) => one[part] !== undefined)?.[part];
    const prompt = latest('systemPrompt');
    const systemPrompt = prompt ? this.textOf(prompt) : '';
    const own = record.caller === undefined ? this.ownPrompt() : undefined;
    const steps = this.stepsOf(record, chain, prompt ? this.writersOf(prompt) : []);
    return {
      record,
      model: latest('model') ?? '',
      systemPrompt,
      ...(own !== undefined && own !== systemPrompt && { ownSystemPrompt: own }),
      systemPromptBy: prompt ? this.writersOf(prompt) : [],
      tools: this.toolsOf(n, latest('tools')?.names ?? []),
      settings: latest('settings') ?? {},
      messages: items.map((item) => this.attributed(item, chain, record)),
      leftOut: this.leftOut(items, sent.history, chain, record),
      steps,
    };
  }

  private notSent(n: number): AlliumError {
    const calls = this.records.filter(({ sent }) => sent).map((one) => one.n);
    return new AlliumError(
      'INVALID_OPTION',
      `Record ${n} of run "${this.runId}" is not a model call. The model calls are: ${calls.join(', ') || 'none'}.`,
    );
  }

  // ── Lists and texts ────────────────────────────────────────────────────────────────────────────────────────

  /** The messages that record `n` made. */
  private listOf(n: number): readonly ListItem[] {
    if (n === 0) return fromHistory(this.#history, 0, this.#history.length);
    let list = this.lists.get(n);
    if (!list) {
      list = this.readUpTo(n);
      this.lists.set(n, list);
    }
    return list;
  }

  /** A list may depend on thousands of others in a row, so they are read from the first on, without recursion. */
  private readUpTo(n: number): readonly ListItem[] {
    const due: number[] = [];
    for (let at = n; at !== 0 && !this.lists.has(at); at = this.writtenAt(at)?.of ?? 0) due.push(at);
    for (const at of due.toReversed()) {
      const written = this.writtenAt(at);
      if (!written) continue;
      const of = written.of === 0 ? [] : (this.lists.get(written.of) ?? []);
      this.lists.set(at, readList(written, this.#history, of, this.index.stored));
    }
    return this.lists.get(n) ?? [];
  }

  private writtenAt(n: number): TracedMessages | undefined {
    const record = this.index.records.get(n);
    return record?.changes?.messages ?? record?.sent?.messages;
  }

  private textOf(text: TracedText): string {
    const chain = [text];
    for (let of = text.of; of !== 0; ) {
      const record = this.index.records.get(of);
      const next = record?.changes?.systemPrompt ?? record?.sent?.systemPrompt;
      if (!next) break;
      chain.push(next);
      of = next.of;
    }
    return chain.reduceRight(
      (base, { start, end, text: made }) => base.slice(0, start) + made + base.slice(end),
      '',
    );
  }

  private ownPrompt(): string | undefined {
    const own = this.records.find(({ by, changes }) => by === 'agent' && changes?.systemPrompt);
    const text = own && this.textOf(own.changes!.systemPrompt!);
    return text === WITHHELD ? undefined : text;
  }

  private writersOf(text: TracedText): readonly string[] {
    const names: string[] = [];
    for (let given = text.given; given !== 0; ) {
      const record = this.index.records.get(given);
      if (!record?.changes?.systemPrompt) break;
      if (record.by !== 'agent') names.unshift(record.by);
      given = record.changes.systemPrompt.given;
    }
    return names;
  }

  private toolsOf(last: number, names: readonly string[]): readonly ToolSpec[] {
    const specs = new Map<string, ToolSpec>();
    for (const { n, sent } of this.records)
      if (n <= last) for (const spec of sent?.tools?.specs ?? []) specs.set(spec.name, spec);
    return names.flatMap((name) => specs.get(name) ?? []);
  }

  // ── Who did it ─────────────────────────────────────────────────────────────────────────────────────────────

  /** The records that made the list that was sent, each from the one before, oldest first. */
  private chainOf(list: TracedMessages | undefined): readonly TraceRecord[] {
    const chain: TraceRecord[] = [];
    for (let given = list?.given ?? 0; given !== 0; ) {
      const record = this.index.records.get(given);
      const made = record?.changes?.messages;
      if (!record || !made || chain.includes(record)) break;
      chain.unshift(record);
      given = made.given;
    }
    return chain;
  }

  private stepsOf(
    call: TraceRecord,
    chain: readonly TraceRecord[],
    prompts: readonly string[],
  ): readonly TraceRecord[] {
    return this.records.filter((one) => {
      if (chain.includes(one)) return true;
      if (one.turn !== call.turn || one.n > call.n || one.sent || one.by === 'agent') return false;
      const { systemPrompt, tools, model, settings } = one.changes ?? {};
      if (systemPrompt) return prompts.includes(one.by);
      return Boolean(tools || model || settings) || one.verdict?.point === 'request';
    });
  }

  private attributed(item: ListItem, chain: readonly TraceRecord[], call: TraceRecord): TracedMessage {
    const { message, place } = item;
    if (place !== undefined) return { message };
    const original = this.#history.find(({ id }) => id === message.id);
    // Guards may pass on a copy that says the same.
    if (original && isEqual(original, message)) return { message };
    if (this.index.kernels.has(message)) return { message, by: 'kernel', ...(original && { original }) };
    const maker = chain.find(({ n }) => this.listOf(n).some((one) => isSame(one, item)));
    // If no step made it, guards of the request did, or the kernel.
    const by = maker?.by ?? this.guardIn(call) ?? 'kernel';
    return { message, by, ...(original && { original }) };
  }

  private guardIn({ turn, n }: TraceRecord): string | undefined {
    return this.records.findLast(
      (one) => one.n < n && one.turn <= turn && one.verdict?.point === 'request' && one.did === 'rewrote',
    )?.by;
  }

  /** A rewritten message keeps its id. */
  private leftOut(
    items: readonly ListItem[],
    length: number,
    chain: readonly TraceRecord[],
    call: TraceRecord,
  ): TracedRequest['leftOut'] {
    if (call.caller !== undefined) return [];
    const sent = new Set(items.map(({ message }) => message.id));
    return this.#history.slice(0, length).flatMap((message) => {
      if (sent.has(message.id)) return [];
      const maker = chain.find(({ n }) => !this.listOf(n).some((one) => one.message.id === message.id));
      return { message, by: maker?.by ?? 'kernel' };
    });
  }
}

/** A message whose text was removed is recognised by its id. */
function isSame(a: ListItem, b: ListItem): boolean {
  return a.place === undefined && (a.message === b.message || a.message.id === b.message.id);
}

interface Index {
  readonly records: ReadonlyMap<number, TraceRecord>;
  /** Messages that are not in the history, by key. */
  readonly stored: ReadonlyMap<string, Message>;
  /** Those that the kernel put into requests. */
  readonly kernels: ReadonlySet<Message>;
}

function indexOf(records: readonly TraceRecord[]): Index {
  const stored = new Map<string, Message>();
  const kernels = new Set<Message>();
  for (const { changes, sent } of records)
    for (const list of [changes?.messages, sent?.messages])
      for (const [key, message] of Object.entries(list?.added ?? {})) {
        stored.set(key, message);
        if (list?.kernel?.includes(key)) kernels.add(message);
      }
  return { records: new Map(records.map((record) => [record.n, record])), stored, kernels };
}

// ── From the journal ─────────────────────────────────────────────────────────────────────────────────────────

/**
 * The trace of a run, read from the entries of its session; undefined if it wasn't traced. Without a `runId`: of the last run
 * that was. `children`: the traces of sub-agents, by the ids of their sessions.
 *
 * @example
 * const trace = readTrace('s1', await store.read('s1', 1));
 */
export function readTrace(
  sessionId: string,
  entries: readonly Entry[],
  runId?: string,
  children?: ReadonlyMap<string, RunTrace>,
): RunTrace | undefined {
  if (typeof sessionId !== 'string') throw invalidOption('sessionId', 'text', sessionId);
  if (!Array.isArray(entries)) throw invalidOption('entries', 'the list that store.read() returns', entries);
  const upgraded = currentEntries(sessionId, entries);
  const wanted = runId ?? upgraded.findLast(isTrace)?.runId;
  const traced = upgraded.filter((entry): entry is Traced => isTrace(entry) && entry.runId === wanted);
  if (wanted === undefined || traced.length === 0) return undefined;
  const history = historyUpTo(sessionId, upgraded, wanted);
  return new TraceReader(
    { runId: wanted, sessionId, history, children },
    {
      records: traced.flatMap(({ records }) => records),
      totals: summed(traced.flatMap(({ totals = [] }) => totals)),
    },
  );
}

type Traced = Entry & EntryBody & { readonly type: 'trace' };

function isTrace(entry: Entry): entry is Traced {
  return entry.type === 'trace';
}

/** The same, with the traces of its sub-agents, and of theirs. */
export async function loadTrace(
  store: Store,
  sessionId: string,
  runId?: string,
): Promise<RunTrace | undefined> {
  const entries = await store.read(sessionId, 1);
  const trace = readTrace(sessionId, entries, runId);
  const agents = new Set(trace?.records.flatMap(({ agentId }) => agentId ?? []));
  if (!trace || agents.size === 0) return trace;
  const children = new Map<string, RunTrace>();
  for (const agentId of agents) {
    const child = await loadTrace(store, agentId);
    if (child) children.set(agentId, child);
  }
  return readTrace(sessionId, entries, runId, children);
}
