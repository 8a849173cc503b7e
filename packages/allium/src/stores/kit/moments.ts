/**
 * Moments: how long a look into an inbox holds good. An append can bring such a look along at no cost, and if a run comes to
 * its next look within the same moment, it needn't ask the store again.
 *
 * A moment lasts until the process waits for something, or until something is posted or deleted in this process. So the only
 * items that such a look can miss were posted by another process while this one didn't wait for anything. The next append
 * finds them.
 */
let current = 0;
let endsSoon = false;
/** How many posts and deletions there were in this process. */
let changes = 0;

// Kept, because tests replace timers.
const immediate = globalThis.setImmediate;

/** The number of this moment. */
export function moment(): number {
  if (!endsSoon) {
    endsSoon = true;
    immediate(() => {
      endsSoon = false;
      current++;
    });
  }
  return current;
}

/** Something was posted or deleted: earlier looks don't count any more. */
export function endMoment(): void {
  current++;
  changes++;
}

/** What was found in the inboxes of sessions in this moment, for stores that are asked over a network. */
export class Looks<Item> {
  #moment = -1;
  readonly #found = new Map<string, readonly Item[]>();
  /** Appends under way, by session. */
  readonly #appending = new Map<string, Promise<readonly Item[] | undefined>>();

  /** Asks for something that brings along what is in the inbox, and keeps that unless something is posted meanwhile. */
  async asked<T>(
    sessionId: string,
    asking: Promise<T>,
    inbox: (answer: T) => readonly Item[] | undefined,
  ): Promise<T> {
    const begun = changes;
    const answer = await asking;
    const found = inbox(answer);
    if (found === undefined || begun !== changes) return answer;
    const now = moment();
    if (this.#moment !== now) this.#found.clear();
    this.#moment = now;
    this.#found.set(sessionId, found);
    return answer;
  }

  /** The same for an append. `asking` is what the inbox has then, or undefined if nothing was appended. */
  async appended(
    sessionId: string,
    asking: Promise<readonly Item[] | undefined>,
  ): Promise<readonly Item[] | undefined> {
    this.#appending.set(sessionId, asking);
    try {
      return await this.asked(sessionId, asking, (found) => found);
    } finally {
      if (this.#appending.get(sessionId) === asking) this.#appending.delete(sessionId);
    }
  }

  /**
   * What is in the inbox: as an append found it in this moment, or as the next one will. A result that is to be written
   * anyway is by the end of the moment. If there is neither, `ask` finds out.
   */
  async look(sessionId: string, ask: () => Promise<readonly Item[]>): Promise<readonly Item[]> {
    const known = this.#moment === current ? this.#found.get(sessionId) : undefined;
    if (known) return known;
    const before = this.#appending.get(sessionId);
    await new Promise<void>((resolve) => {
      immediate(resolve);
    });
    const append = this.#appending.get(sessionId);
    const found = append && append !== before ? await append.catch(() => undefined) : undefined;
    return found ?? ask();
  }
}
