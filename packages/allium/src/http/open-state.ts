/** What the journal says about a run that has not ended: whether it is under way, waits, or was abandoned. */
import type { Entry, PendingRequest } from '../index.js';

export class OpenState {
  open = false;
  runId = '';
  /** When something was last written, in milliseconds since the epoch. */
  at = 0;
  readonly requests = new Map<string, PendingRequest>();
  private calls = new Set<string>();
  /** The run stopped working when it asked. */
  private halted = false;

  /** Does everything that is open wait for an answer? */
  get waits(): boolean {
    if (this.requests.size === 0) return false;
    if (this.halted) return true;
    const asked = [...this.requests.values()];
    if (asked.some(({ kind }) => kind === 'ask')) return true;
    const waiting = new Set(asked.map(({ callId }) => callId));
    return [...this.calls].every((id) => waiting.has(id));
  }

  apply(entry: Entry): void {
    this.at = entry.at;
    switch (entry.type) {
      case 'run_start':
        this.open = true;
        this.runId = entry.runId;
        return;
      case 'run_end':
        this.open = false;
        this.clear();
        return;
      case 'message':
        this.clear();
        if (entry.message.role === 'assistant')
          for (const part of entry.message.content) if (part.type === 'tool-call') this.calls.add(part.id);
        return;
      case 'tool_finished':
        this.calls.delete(entry.message.toolCallId);
        for (const [id, { callId }] of this.requests)
          if (callId === entry.message.toolCallId) this.requests.delete(id);
        return;
      case 'request':
        for (const id of entry.replaces ?? []) this.requests.delete(id);
        this.requests.set(entry.request.id, entry.request);
        this.halted = entry.waits === true;
        return;
      case 'answer':
        this.requests.delete(entry.requestId);
        this.halted = false;
        return;
      default:
    }
  }

  private clear(): void {
    this.requests.clear();
    this.calls.clear();
    this.halted = false;
  }
}
