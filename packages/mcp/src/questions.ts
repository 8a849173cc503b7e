/** Finds the call that a server's question belongs to. Servers of 2025 ask on the connection and don't say, except over HTTP. */

import { AlliumError } from 'allium';

const MOST_KNOWN = 1000;

/** Passes each question to the one call that can have caused it. */
export class Questions<Call> {
  private readonly calls = new Set<Call>();
  private readonly asking = new Set<Call>();
  /** Over HTTP: the calls that questions came with, by their ids; undefined if that one is over. */
  private readonly known = new Map<unknown, Call | undefined>();
  private waiting: { resolve(call: Call): void; reject(error: Error): void }[] = [];

  begin(call: Call): void {
    this.calls.add(call);
  }

  end(call: Call): void {
    this.calls.delete(call);
    this.match();
  }

  /** This question came in the stream that answers this call. */
  heard(id: unknown, call: Call | undefined): void {
    this.known.set(id, call);
    // Some are never asked, because they are not allowed or not what the protocol says.
    if (this.known.size > MOST_KNOWN) this.known.delete(this.known.keys().next().value);
  }

  /** Asks in the name of the call it came with. If that isn't known, waits until only one call is left that can have asked. */
  async ask<T>(id: unknown, answer: (call: Call) => Promise<T>): Promise<T> {
    const call = this.known.has(id) ? this.takeKnown(id) : await this.only();
    this.asking.add(call);
    try {
      return await answer(call);
    } finally {
      this.asking.delete(call);
      this.match();
    }
  }

  private takeKnown(id: unknown): Call {
    const call = this.known.get(id);
    this.known.delete(id);
    if (call === undefined || !this.calls.has(call)) throw unclear(0);
    return call;
  }

  private only(): Promise<Call> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.match();
    });
  }

  private match(): void {
    const [question] = this.waiting;
    if (!question) return;
    const candidates = [...this.calls].filter((call) => !this.asking.has(call));
    if (candidates.length > 1 && this.waiting.length < candidates.length) return;
    const [only, ...others] = candidates;
    const refused = this.waiting;
    this.waiting = [];
    if (only !== undefined && others.length === 0 && refused.length === 1) question.resolve(only);
    else for (const one of refused) one.reject(unclear(candidates.length));
  }
}

function unclear(calls: number): AlliumError {
  return new AlliumError(
    'MCP_QUESTION_UNCLEAR',
    calls === 0
      ? 'The server asked something while no call was under way.'
      : `The server asked something while ${calls} calls were under way, and does not say which one it is about. Set \`sequential: true\` for this server.`,
  );
}
