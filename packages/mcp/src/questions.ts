/** Finds the call that a server's question belongs to. Servers of 2025 ask on the connection and don't say. */

import { AlliumError } from 'allium';

/** Passes each question to the one call that can have caused it. */
export class Questions<Call> {
  private readonly calls = new Set<Call>();
  private readonly asking = new Set<Call>();
  private waiting: { resolve(call: Call): void; reject(error: Error): void }[] = [];

  begin(call: Call): void {
    this.calls.add(call);
  }

  end(call: Call): void {
    this.calls.delete(call);
    this.match();
  }

  /** Waits until only one call is left that can have asked, then asks in its name. */
  async ask<T>(answer: (call: Call) => Promise<T>): Promise<T> {
    const call = await new Promise<Call>((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.match();
    });
    this.asking.add(call);
    try {
      return await answer(call);
    } finally {
      this.asking.delete(call);
      this.match();
    }
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
