/** The append-only list of messages of a session. Readers get frozen prefixes, made when somebody reads them. */
import type { Message } from './messages.js';

export class History {
  private readonly messages: Message[] = [];
  private snapshot: readonly Message[] = Object.freeze([]);

  get length(): number {
    return this.messages.length;
  }

  append(message: Message): void {
    this.messages.push(message);
  }

  at(index: number): Message | undefined {
    return this.messages.at(index);
  }

  all(): readonly Message[] {
    return this.first(this.messages.length);
  }

  /** The first `count` messages. */
  first(count: number): readonly Message[] {
    if (this.snapshot.length !== count) this.snapshot = Object.freeze(this.messages.slice(0, count));
    return this.snapshot;
  }

  from(index: number): readonly Message[] {
    return this.messages.slice(index);
  }
}
