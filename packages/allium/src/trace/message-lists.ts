/**
 * Stores lists of messages as their difference from lists the reader has: the history, and the list the same step
 * made the last time. So a step that rewrites a long history in the same way every turn costs only what is new.
 */

import type { Message, TracedMessages } from '../index.js';
import { isEqual } from './value-changes.js';

type Part = TracedMessages['parts'][number];

/** A list that some record made. */
interface Made {
  readonly n: number;
  readonly list: readonly Message[];
  /** Its length at that time: a view of the history keeps growing. */
  readonly length: number;
}

export class MessageLists {
  /** Where messages are in the history. */
  private readonly index = new WeakMap<Message, number>();
  private indexed = 0;
  /** The record that made a list. */
  private readonly makers = new WeakMap<readonly Message[], number>();
  /** The list each step made the last time. */
  private readonly last = new Map<string, Made>();
  private readonly keys = new WeakMap<Message, string>();

  /** `count`: how many keys were used before a resume. */
  constructor(
    private readonly history: () => readonly Message[],
    private count: number,
  ) {}

  /** The record that made this list, if one did; 0 for the history. */
  makerOf(list: readonly Message[] | undefined): number | undefined {
    return list === undefined ? 0 : this.makers.get(list);
  }

  /**
   * `step`: the step that made the list. `tell`: redacts a message that the reader doesn't have yet. `from`: the list that the
   * step was given, if no record made it. Messages in it that aren't in the history are the kernel's.
   */
  write(
    step: string,
    n: number,
    list: readonly Message[],
    given: number,
    tell: (message: Message) => Message = same,
    coming: readonly Message[] = [],
    from: readonly Message[] = [],
  ): TracedMessages {
    this.grow(coming);
    const base = this.last.get(step);
    const parts: Part[] = [];
    const added: Record<string, Message> = {};
    const kernel: string[] = [];
    const { length } = list;
    // Where to look next in the base.
    let at = 0;
    for (let i = 0; i < length; i++) {
      const message = list[i]!;
      if (base && at < base.length && isSameMessage(message, base.list[at]!)) {
        extend(parts, 'of', at++);
        continue;
      }
      const place = this.index.get(message);
      if (place !== undefined) extend(parts, 'history', place);
      else {
        const key = this.keyOf(message, tell, added);
        if (key in added && from.includes(message)) kernel.push(key);
        parts.push({ key });
        at++;
      }
    }
    this.makers.set(list, n);
    this.last.set(step, { n, list, length });
    const { n: of = 0 } = base ?? {};
    return {
      of,
      given,
      parts,
      ...(Object.keys(added).length > 0 && { added }),
      ...(kernel.length > 0 && { kernel }),
    };
  }

  private keyOf(
    message: Message,
    tell: (message: Message) => Message,
    added: Record<string, Message>,
  ): string {
    const known = this.keys.get(message);
    if (known !== undefined) return known;
    const told = tell(message);
    const key = `m${++this.count}`;
    // A message from which something was removed gets no key, so that it can be stored whole later.
    if (told === message || isEqual(told, message)) this.keys.set(message, key);
    added[key] = told;
    return key;
  }

  /** `coming`: messages that will follow the history, unless guards refuse them. */
  private grow(coming: readonly Message[]): void {
    const history = this.history();
    for (; this.indexed < history.length; this.indexed++)
      this.index.set(history[this.indexed]!, this.indexed);
    for (const [i, message] of coming.entries()) this.index.set(message, history.length + i);
  }
}

function same(message: Message): Message {
  return message;
}

/** Extends the last range, or begins another. */
function extend(parts: Part[], kind: 'history' | 'of', at: number): void {
  const before = parts.at(-1) as { [K in typeof kind]?: [number, number] } | undefined;
  const range = before?.[kind];
  if (range && range[1] === at) range[1] = at + 1;
  else parts.push({ [kind]: [at, at + 1] } as unknown as Part);
}

/** Some steps make copies of the messages in every turn. */
function isSameMessage(a: Message, b: Message): boolean {
  return a === b || (a.id === b.id && a.role === b.role && isEqual(a, b));
}

/** A message of a list that was read: where it is in the history, or the key it was stored under. */
export interface ListItem {
  readonly message: Message;
  readonly place: number | undefined;
}

/** Reads a list. `of`: the one it was stored as a difference from. */
export function readList(
  { parts }: TracedMessages,
  history: readonly Message[],
  of: readonly ListItem[],
  stored: ReadonlyMap<string, Message>,
): readonly ListItem[] {
  return parts.flatMap((part): readonly ListItem[] => {
    if ('key' in part) {
      const message = stored.get(part.key);
      return message ? [{ message, place: undefined }] : [];
    }
    if ('of' in part) return of.slice(...part.of);
    const [from, to] = part.history;
    return fromHistory(history, from, to);
  });
}

export function fromHistory(history: readonly Message[], from: number, to: number): readonly ListItem[] {
  return history.slice(from, to).map((message, i) => ({ message, place: from + i }));
}
