/**
 * The append-only list of messages of a session. Readers get frozen lists of frozen messages; both are frozen when
 * somebody looks, because in most turns nobody does.
 */
import { freezeMessage, type Message } from './messages.js';

export class History {
  private readonly messages: Message[] = [];
  private frozen = 0;
  private snapshot: readonly Message[] = Object.freeze([]);

  get length(): number {
    return this.messages.length;
  }

  append(message: Message): void {
    this.messages.push(message);
  }

  at(index: number): Message | undefined {
    const message = this.messages.at(index);
    return message && freezeMessage(message);
  }

  all(): readonly Message[] {
    return this.first(this.messages.length);
  }

  /** The first `count` messages. */
  first(count: number): readonly Message[] {
    if (this.snapshot.length !== count) this.snapshot = this.between(0, count);
    return this.snapshot;
  }

  from(index: number): readonly Message[] {
    return this.between(index, this.messages.length);
  }

  between(from: number, to: number): readonly Message[] {
    for (; this.frozen < to; this.frozen++) freezeMessage(this.messages[this.frozen]!);
    return Object.freeze(this.messages.slice(from, to));
  }

  /** Text of the last assistant message from `from` on. For the kernel: it freezes nothing. */
  lastAnswer(from: number): Message | undefined {
    for (let i = this.messages.length - 1; i >= from; i--) if (this.messages[i]!.role === 'assistant') return this.messages[i];
    return undefined;
  }
}
