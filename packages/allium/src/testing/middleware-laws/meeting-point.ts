/** Shows whether two calls run side by side: they meet here, while a call that runs alone waits in vain. */

import type { Clock } from '../../index.js';

/** How many timers a call waits for the other one, which may still be on its way. */
const PATIENCE = 10;

/** A call that comes while another one waits meets it. A call that stays alone gives up when nothing else happens. */
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
