/** What may go into a trace: JSON, without anything that guards remove. */

import { AlliumError, type Context, type Message, type TracedError, type ValueChange } from '../index.js';
import {
  errorKind,
  isTellableError,
  messageOf,
  type PlannedGuard,
  type RecordedRun,
  safeStackFrames,
} from '../kit/index.js';
import { jsonOf, plainChanges, valueChanges } from './value-changes.js';

export const WITHHELD = '[withheld]';

function isJudge({ guard }: PlannedGuard): boolean {
  return guard.judge !== undefined && guard.action !== 'warn';
}

/**
 * Hooks see text before guards have judged it. What guards find is removed here. Judges can't be asked in passing, so
 * if there is one, what hooks wrote is withheld. What was sent to a model has passed the guards and stays.
 */
export class Telling {
  /** Something may have to be removed. */
  readonly guarded: boolean;
  private readonly judged: boolean;
  private readonly requestsJudged: boolean;
  /** Guards are being asked for the trace, which doesn't count as one of their calls. */
  asks = false;

  constructor(private readonly run: RecordedRun) {
    const guards = Object.values(run.plan.guards).flat();
    this.guarded = guards.length > 0;
    this.judged = guards.some(isJudge);
    this.requestsJudged = run.plan.guards.request.some(isJudge);
  }

  /** The value after the guards. */
  value(given: unknown): unknown {
    if (given === undefined) return undefined;
    return this.judged ? WITHHELD : this.afterFinding(given);
  }

  /** The agent's own system prompt. It quotes nobody, so only a judge of whole requests could object to it. */
  ownPrompt(given: string): string {
    return this.requestsJudged ? WITHHELD : (this.afterFinding(given) as string);
  }

  private afterFinding(given: unknown): unknown {
    const json = jsonOf(given);
    if (!this.guarded) return json;
    this.asks = true;
    try {
      return this.run.safe(json) ?? WITHHELD;
    } catch {
      // A guard that breaks here would break where it judges, too.
      return WITHHELD;
    } finally {
      this.asks = false;
    }
  }

  /** The differences between two values, after the guards. If no guard judges, only these are copied. */
  changes(before: unknown, after: unknown): readonly ValueChange[] {
    if (!this.guarded) return plainChanges(before, after);
    const [from, to] = [this.value(before), this.value(after)];
    return valueChanges(from, to) ?? [{ path: [], from, to }];
  }

  text(given: string): string {
    return this.value(given) as string;
  }

  message(given: Message): Message {
    const told = this.value(given);
    if (typeof told === 'object') return told as Message;
    return { id: given.id, role: 'user', content: [{ type: 'text', text: WITHHELD }] };
  }

  /** The kind of an error, and its message and stack if no guard objects to them. */
  error(error: unknown, ctx: Context): TracedError {
    const name = errorKind(error);
    if (!isTellableError(error, ctx)) return { name };
    const code = error instanceof AlliumError ? error.code : undefined;
    const stack = safeStackFrames(error, ctx);
    return { name, message: messageOf(error), ...(code && { code }), ...(stack && { stack }) };
  }
}
