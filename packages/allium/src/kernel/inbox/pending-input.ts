/**
 * The input of a run while guards judge it in parallel to the first model call. Until they allow it, it isn't journaled, and
 * nothing of the answer is written, shown or run.
 */

import type { Overlay } from '../context/cells.js';
import { RunContext } from '../context/context.js';
import { judgeMessage } from '../guards/content-guards.js';
import { latching } from '../guards/guards.js';
import { stopFor } from '../guards/refusal.js';
import { Scope } from '../lib/scope.js';
import type { Message } from '../messages/messages.js';
import type { PlannedGuard } from '../protocol/middleware.js';
import { controlKind } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { InboxRun } from './inbox-run.js';

export class PendingInput {
  private readonly scope: Scope;
  private readonly verdict: Promise<void>;
  /** What the guards wrote to cells. */
  private readonly judged: Overlay[] = [];
  /** Model calls that depend on it. */
  private readonly calls: Scope[] = [];
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly run: InboxRun,
    /** As they will be in the history. */
    readonly messages: readonly Message[],
    /** What was written to cells about them. */
    readonly written: Overlay | undefined,
    guards: readonly PlannedGuard[],
    /** Takes the input in. */
    take: () => Awaitable<void>,
  ) {
    this.scope = new Scope(run.scope);
    this.verdict = this.judgeAll(guards, take);
    // Handled where `allowed()` is awaited.
    this.verdict.catch(() => {});
  }

  /** Resolves once the input is in the history; rejects if a guard refused it. */
  allowed(): Promise<void> {
    return this.verdict;
  }

  /** Calls `release` as soon as the input is allowed: an answer that comes at the same moment must not overtake it. */
  whenAllowed(release: () => void): void {
    this.waiting.push(release);
  }

  /** Aborts this model call if the input is refused. */
  abortIfRefused(call: Scope): void {
    this.calls.push(call);
  }

  /** The turn failed with `error`. If the input is refused, the refusal counts instead; otherwise the input is still taken in. */
  async endedBy(error: unknown): Promise<unknown> {
    try {
      await this.verdict;
      return error;
    } catch (refusal) {
      return controlKind(refusal) === 'abort' ? error : refusal;
    }
  }

  private async judgeAll(guards: readonly PlannedGuard[], take: () => Awaitable<void>): Promise<void> {
    const { run } = this;
    try {
      await Promise.all(
        this.messages.flatMap((message) => guards.map((planned) => this.ask(planned, message))),
      );
      for (const written of this.judged) run.cells.stage(written);
      await take();
      run.pendingInput = undefined;
      for (const release of this.waiting) release();
    } catch (error) {
      for (const call of this.calls) call.abort(error);
      // Don't wait for guards that haven't answered.
      this.scope.abort(error);
      throw error;
    }
  }

  private async ask(planned: PlannedGuard, message: Message): Promise<void> {
    const ctx = new RunContext(this.run, this.scope, this.messages);
    if (this.written) ctx._state = this.written.inner();
    const { deny } = await latching(ctx, () => judgeMessage('input', message, ctx, [planned]));
    if (deny) throw stopFor(deny, ctx);
    if (ctx._state) this.judged.push(ctx._state);
  }
}
