/** What goes on at a bench, and how the kit's own model and tools pause. */

import { untilAborted } from '../scripted-model.js';

/** What goes on at a bench. It is quiet when nothing does. */
export interface Activity {
  calls: number;
  /** Calls that came to the scenario. */
  steps: number;
  /** Pauses of the kit that end by themselves. */
  working: number;
  /** Waits of the kit that only an abort ends. */
  hanging: number;
}

export interface Waits {
  tick(): Promise<void>;
  hang(signal: AbortSignal): Promise<void>;
}

export function waits(activity: Activity): Waits {
  return {
    async tick() {
      activity.working++;
      await new Promise((resolve) => setImmediate(resolve));
      activity.working--;
    },
    async hang(signal) {
      activity.hanging++;
      await untilAborted(signal);
      activity.hanging--;
    },
  };
}
