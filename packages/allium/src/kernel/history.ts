/**
 * The append-only list of messages of a session. Copying it for every turn would make long sessions quadratic, so
 * readers share one view: a list that grows at its end and refuses to be edited, apart from the kernel's own, so that
 * whatever is done to the view reaches no history. Messages are frozen when somebody looks; in many turns nobody does.
 */
import { freezeMessage, type Message } from './messages.js';

export class History {
  private readonly messages: Message[] = [];
  /** Made for the first reader. */
  private shared: Message[] | undefined = undefined;
  /** How long the view is, unless somebody meddled with it. */
  private viewed = 0;
  /** How many, from the first on, are known to be frozen. */
  private frozen = 0;
  private coming: Message | undefined = undefined;

  get length(): number {
    return this.messages.length;
  }

  append(message: Message): void {
    if (message === this.coming && this.frozen === this.messages.length) this.frozen++;
    this.messages.push(message);
  }

  /** This message is frozen, with all that is in it, and about to be appended. Asking it again would cost more. */
  knows(message: Message): void {
    this.coming = message;
  }

  at(index: number): Message | undefined {
    const message = this.messages.at(index);
    return message && freezeMessage(message);
  }

  /** Everything so far, as a view that goes on growing. */
  view(): readonly Message[] {
    const { messages, viewed } = this;
    let { shared } = this;
    if (shared !== undefined && shared.length === viewed && viewed === messages.length) return shared;
    // Somebody froze it, or cut it past the type checker: later readers get a fresh one.
    if (shared === undefined || shared.length !== viewed || !Object.isExtensible(shared)) {
      shared = readOnly();
      this.shared = shared;
    }
    for (let i = shared.length; i < messages.length; i++) shared[i] = this.freeze(i);
    this.viewed = messages.length;
    return shared;
  }

  /** Everything so far, as it is now. */
  all(): readonly Message[] {
    return this.between(0, this.messages.length);
  }

  /** The first `count` messages: the view, as long as there are no more. */
  first(count: number): readonly Message[] {
    return count === this.messages.length ? this.view() : this.between(0, count);
  }

  /** The same for whoever makes a request of it: a short history is copied, which costs less than making the view. */
  request(count: number): readonly Message[] {
    if (this.shared !== undefined || count > SHORT) return this.first(count);
    return this.between(0, count);
  }

  from(index: number): readonly Message[] {
    return this.between(index, this.messages.length);
  }

  between(from: number, to: number): readonly Message[] {
    for (let i = Math.max(from, this.frozen); i < to; i++) this.freeze(i);
    return Object.freeze(this.messages.slice(from, to));
  }

  /** The last assistant message from `from` on. For the kernel: it freezes nothing. */
  lastAnswer(from: number): Message | undefined {
    for (let i = this.messages.length - 1; i >= from; i--) {
      if (this.messages[i]!.role === 'assistant') return this.messages[i];
    }
    return undefined;
  }

  private freeze(index: number): Message {
    const message = this.messages[index]!;
    if (index < this.frozen) return message;
    if (index === this.frozen) this.frozen++;
    return freezeMessage(message);
  }
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
