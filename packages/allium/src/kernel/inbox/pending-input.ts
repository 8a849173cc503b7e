/**
 * The input of a run that guards still judge, beside the first model call. Until they allow it, it is in no journal, and
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
  /** Model calls that go with it. */
  private readonly calls: Scope[] = [];

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
    this.verdict = this.judge(guards, take);
    // Whoever has to know waits for it.
    this.verdict.catch(() => {});
  }

  /** Settles once the input is in the history; throws what the guards said instead. */
  allowed(): Promise<void> {
    return this.verdict;
  }

  /** The model call of this scope ends when the input is refused. */
  endsWith(call: Scope): void {
    this.calls.push(call);
  }

  /** The turn failed. If the input is refused, that is why; otherwise it is taken in all the same. */
  async endedBy(error: unknown): Promise<unknown> {
    try {
      await this.verdict;
      return error;
    } catch (refusal) {
      return controlKind(refusal) === 'abort' ? error : refusal;
    }
  }

  private async judge(guards: readonly PlannedGuard[], take: () => Awaitable<void>): Promise<void> {
    const { run } = this;
    try {
      await Promise.all(
        this.messages.flatMap((message) => guards.map((planned) => this.ask(planned, message))),
      );
      for (const written of this.judged) run.cells.stage(written);
      await take();
      run.pendingInput = undefined;
    } catch (error) {
      for (const call of this.calls) call.abort(error);
      // Guards that have not answered are not waited for.
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
