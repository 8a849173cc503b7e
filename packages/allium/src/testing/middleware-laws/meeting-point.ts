/** Where two calls meet that run side by side, and one waits in vain that runs alone. */

import type { Clock } from '../../index.js';

/** How often somebody who waits for another is let wait on, though nothing else happens: the other may be at work. */
const PATIENCE = 10;

/** Two meet there who come while the other is still waiting. Who is alone gives up when nothing happens any more. */
export function meetingPoint(time: Clock): () => Promise<string> {
  let met: (() => void) | undefined;
  return () =>
    new Promise((resolve) => {
      if (met) {
        met();
        resolve('together');
        return;
      }
      let cancel: () => void;
      const wait = (left: number): void => {
        cancel = time.setTimer(() => (left > 0 ? wait(left - 1) : leave('alone')), 1);
      };
      const leave = (how: string): void => {
        cancel();
        met = undefined;
        resolve(how);
      };
      met = () => leave('together');
      wait(PATIENCE);
    });
}
