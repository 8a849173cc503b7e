/** What tool calls need of a run. */

import type { Clock } from '../lib/clock.js';
import type { ModelRun } from '../model/model-run.js';
import type { RequestHandler } from '../protocol/store.js';

export interface ToolsRun extends ModelRun {
  readonly agent: ModelRun['agent'] & { readonly clock: Clock; readonly _forgets: boolean };
  readonly forgets: boolean;
  readonly onRequest: RequestHandler | undefined;
  /** Until this process went on with it, somebody was asked about its calls, so none of them had begun. */
  readonly asked: boolean;
  /** A call gets no result of its own. */
  giveUp(messageId: string, index: number): void;
  /** Time spent in here is not active time. */
  paused<T>(wait: () => Promise<T>): Promise<T>;
  /** Nobody here knows how far it got: from here on nothing is written. */
  surrender(error: unknown): unknown;
}
