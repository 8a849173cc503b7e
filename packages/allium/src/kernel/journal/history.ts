/**
 * The append-only list of messages of a session. Copying it for every turn would make long sessions quadratic, so
 * readers share one view: a list that grows at its end and refuses to be edited, apart from the kernel's own, so that
 * whatever is done to the view reaches no history. Requests have a view of their own: nobody can keep an assignment to a
 * place in a list from happening, but what middleware do to theirs is not sent.
 */
import { freezeMessage, type Message } from '../messages/messages.js';

export class History {
  private readonly messages: Message[] = [];
  /** Each is made for its first reader: middleware, and models. */
  private shared: View | undefined = undefined;
  private sent: View | undefined = undefined;

  get length(): number {
    return this.messages.length;
  }

  append(message: Message): void {
    this.messages.push(freezeMessage(message));
  }

  at(index: number): Message | undefined {
    return this.messages.at(index);
  }

  /** Everything so far, as a view that goes on growing. */
  view(): readonly Message[] {
    this.shared ??= new View();
    return this.grown(this.shared);
  }

  private grown(view: View): readonly Message[] {
    const { messages } = this;
    let { list } = view;
    if (list.length === view.length && view.length === messages.length) return list;
    // Somebody froze it, or cut it past the type checker: later readers get a fresh one.
    if (list.length !== view.length || !Object.isExtensible(list)) {
      list = readOnly();
      view.list = list;
    }
    for (let i = list.length; i < messages.length; i++) list[i] = messages[i]!;
    view.length = messages.length;
    return list;
  }

  /** Everything so far, as it is now. */
  all(): readonly Message[] {
    return this.between(0, this.messages.length);
  }

  /** The first `count` messages: the view, as long as there are no more. */
  first(count: number): readonly Message[] {
    return count === this.messages.length ? this.view() : this.between(0, count);
  }

  /** The same for requests. A short history is copied, which costs less than making the view. */
  request(count: number): readonly Message[] {
    if (count !== this.messages.length || (this.sent === undefined && count <= SHORT))
      return this.between(0, count);
    this.sent ??= new View();
    return this.grown(this.sent);
  }

  from(index: number): readonly Message[] {
    return this.between(index, this.messages.length);
  }

  between(from: number, to: number): readonly Message[] {
    return Object.freeze(this.messages.slice(from, to));
  }

  /** Another one, which ends with this message: whoever holds a view of this one keeps what it has. */
  upTo(id: string | null): History {
    const cut = new History();
    const length = id === null ? 0 : this.messages.findLastIndex((message) => message.id === id) + 1;
    for (let i = 0; i < length; i++) cut.append(this.messages[i]!);
    return cut;
  }

  /** The last assistant message from `from` on. */
  lastAnswer(from: number): Message | undefined {
    const at = this.messages.findLastIndex(({ role }) => role === 'assistant');
    return at >= from ? this.messages[at] : undefined;
  }
}

/** Has the model nothing left to answer? */
export function isAnswered(history: History): boolean {
  const last = history.at(-1)?.role;
  return last === undefined || last === 'assistant';
}

/** A list for readers, and how long it is unless somebody meddled with it. */
class View {
  list: Message[] = readOnly();
  length = 0;
}

/** Copying this many messages once per turn costs as much as the view of them. */
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

/** One by one, which costs less than `defineProperties`. */
function readOnly(): Message[] {
  const list: Message[] = [];
  for (const name of MUTATORS) Object.defineProperty(list, name, REFUSED);
  return list;
}

/** Is this the view of a history, whose beginning never changes? */
export function growsOnly(list: readonly Message[]): boolean {
  return (list as Message[]).push === refuse;
}
