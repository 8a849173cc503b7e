/**
 * The append-only messages of a session. Copying them every turn would make long sessions quadratic, so readers share a view:
 * a growing list that refuses edits and is separate from the kernel's own, so that edits never reach the history. Requests
 * have a second view, because assigning to an index can't be prevented: what middleware do to theirs isn't sent.
 */

import { freezeMessage, type Message } from '../messages/messages.js';

/** What is known of the last message even if nobody has read it. */
export type LastMessage = Pick<Message, 'id' | 'role'>;

/** Messages that were not read: the first `length`, which are in the entries up to `seq`. */
export interface Unread {
  readonly length: number;
  readonly seq: number;
  readonly last: LastMessage;
  /** The index of the first one that is pinned. */
  readonly pinnedAt: number | undefined;
}

/** Indexes count all messages, whether they were read or not. */
export class History {
  private readonly messages: Message[] = [];
  /** The view of middleware and that of requests, made on first use. */
  private shared: View | undefined = undefined;
  private sent: View | undefined = undefined;
  /** The index of the first message with `metadata.pinned`: it stays in every request, so it is always read. */
  pinnedAt: number | undefined;
  /** The index of the first message that was read. */
  readonly start: number;

  constructor(readonly unread: Unread | undefined = undefined) {
    this.start = unread?.length ?? 0;
    this.pinnedAt = unread?.pinnedAt;
  }

  get length(): number {
    return this.start + this.messages.length;
  }

  get last(): LastMessage | undefined {
    return this.messages.at(-1) ?? this.unread?.last;
  }

  /** Does it lack messages that were not read? */
  get isPartial(): boolean {
    return this.unread !== undefined;
  }

  append(message: Message): void {
    if (message.metadata?.pinned === true) this.pinnedAt ??= this.length;
    this.messages.push(freezeMessage(message));
  }

  /** A history with `earlier` messages before these; `unread`: those before them. Views of this one don't change. */
  withEarlier(earlier: readonly Message[], unread: Unread | undefined): History {
    const longer = new History(unread);
    for (const message of earlier) longer.append(message);
    for (const message of this.messages) longer.append(message);
    return longer;
  }

  /** Everything that was read so far, as a view that keeps growing. */
  view(): readonly Message[] {
    this.shared ??= new View();
    return this.grown(this.shared);
  }

  private grown(view: View): readonly Message[] {
    const { messages } = this;
    let { list } = view;
    if (list.length === view.length && view.length === messages.length) return list;
    // Somebody froze or shortened it: later readers get a new one.
    if (list.length !== view.length || !Object.isExtensible(list)) {
      list = readOnly();
      view.list = list;
    }
    for (let i = list.length; i < messages.length; i++) list[i] = messages[i]!;
    view.length = messages.length;
    return list;
  }

  /** A snapshot of everything so far. */
  all(): readonly Message[] {
    return this.from(0);
  }

  /** What was read of the first `count` messages; the view if these are all. */
  first(count: number): readonly Message[] {
    return count === this.length ? this.view() : this.between(this.start, count);
  }

  /** The same for requests. A short history is copied, which is cheaper than a view. */
  request(count: number): readonly Message[] {
    if (count !== this.length || (this.sent === undefined && count <= SHORT))
      return this.between(this.start, count);
    this.sent ??= new View();
    return this.grown(this.sent);
  }

  from(index: number): readonly Message[] {
    return this.between(index, this.length);
  }

  between(from: number, to: number): readonly Message[] {
    this.checkRead(from);
    const { start } = this;
    return Object.freeze(this.messages.slice(from - start, to - start));
  }

  private checkRead(from: number): void {
    if (from < this.start) throw new Error('These messages were not read. Call readHistory() first.');
  }

  /** A new history that ends with this message. Views of this one don't change. */
  upTo(id: string | null): History {
    this.checkRead(0);
    const cut = new History();
    const length = id === null ? 0 : this.messages.findLastIndex((message) => message.id === id) + 1;
    for (let i = 0; i < length; i++) cut.append(this.messages[i]!);
    return cut;
  }

  /** The last assistant message from `from` on. */
  lastAnswer(from: number): Message | undefined {
    this.checkRead(from);
    const at = this.messages.findLastIndex(({ role }) => role === 'assistant');
    return this.start + at >= from ? this.messages[at] : undefined;
  }
}

/** Is there nothing left for the model to answer? */
export function isAnswered(history: History): boolean {
  const last = history.last?.role;
  return last === undefined || last === 'assistant';
}

/** A list for readers, and its length if nobody has tampered with it. */
class View {
  list: Message[] = readOnly();
  length = 0;
}

/** Copying this many messages per turn costs as much as keeping a view. */
const SHORT = 32;

const MUTATORS = [
  'push',
  'pop',
  'shift',
  'unshift',
  'splice',
  'sort',
  'reverse',
  'fill',
  'copyWithin',
] as const;

function refuse(): never {
  throw new TypeError('The history is read-only. Make a new list, for example [...messages, message].');
}

const REFUSED: PropertyDescriptor = { value: refuse };

/** One by one, which is faster than `defineProperties`. */
function readOnly(): Message[] {
  const list: Message[] = [];
  for (const name of MUTATORS) Object.defineProperty(list, name, REFUSED);
  return list;
}

/** Is this a view of a history? It only ever grows at its end. */
export function growsOnly(list: readonly Message[]): boolean {
  return (list as Message[]).push === refuse;
}
