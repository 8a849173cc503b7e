/** Batches what many sessions ask at once: while some statements are under way, the next batch gathers. */

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

export interface BatchOptions<Asked, Answer> {
  /** Answers each of them, in order. If it throws, all of them get the error. */
  send(batch: readonly Asked[]): Promise<readonly Answer[]>;
  /** No batch may have two with the same key. */
  key(asked: Asked): string;
  /** Batches under way at once. */
  readonly parallel: number;
}

/** A longer statement would only delay those that wait for its first row. */
const MOST = 100;

export class Batches<Asked, Answer> {
  readonly #options: BatchOptions<Asked, Answer>;
  #waiting: Waiting<Asked, Answer>[] = [];
  #underWay = 0;

  constructor(options: BatchOptions<Asked, Answer>) {
    this.#options = options;
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    if (this.#underWay >= this.#options.parallel || this.#waiting.length === 0) return;
    this.#underWay++;
    void this.#answer(this.#gather()).finally(() => {
      this.#underWay--;
      this.#next();
    });
  }

  #gather(): Waiting<Asked, Answer>[] {
    const keys = new Set<string>();
    const batch: Waiting<Asked, Answer>[] = [];
    const later: Waiting<Asked, Answer>[] = [];
    for (const one of this.#waiting) {
      const key = this.#options.key(one.asked);
      if (batch.length < MOST && !keys.has(key)) batch.push(one);
      else later.push(one);
      keys.add(key);
    }
    this.#waiting = later;
    return batch;
  }

  async #answer(batch: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.send(batch.map(({ asked }) => asked));
      batch.forEach(({ resolve }, i) => {
        resolve(answers[i]!);
      });
    } catch (error) {
      // The server refused the statement, so nothing was done. Sent one by one, they show which one was at fault.
      if (batch.length > 1 && isRefusal(error)) for (const one of batch) await this.#answer([one]);
      else for (const { reject } of batch) reject(error);
    }
  }
}

/**
 * An error of the server, by its five-character code. After an error of the connection, nobody knows what was done.
 */
function isRefusal(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(08|57P)/.test(code);
}
