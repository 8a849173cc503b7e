/** What tool calls need from a run. */

import type { Clock } from '../lib/clock.js';
import type { ModelRun } from '../model/model-run.js';
import type { RequestHandler } from '../protocol/store.js';

export interface ToolsRun extends ModelRun {
  readonly agent: ModelRun['agent'] & { readonly clock: Clock; readonly _forgets: boolean };
  readonly forgets: boolean;
  readonly onRequest: RequestHandler | undefined;
  /** Somebody was being asked about its calls when this process took over the run, so none of them had begun. */
  readonly asked: boolean;
  /** Notes that a call gets no result of its own. */
  giveUp(messageId: string, index: number): void;
  /** Time spent in here is not active time. */
  paused<T>(wait: () => Promise<T>): Promise<T>;
  /** Nobody here knows how far the run got, so nothing is written from here on. */
  surrender(error: unknown): unknown;
}
