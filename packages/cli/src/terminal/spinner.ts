/** A line at the bottom that says what is being waited for, and for how long. Only on a terminal. */
import type { Io } from './io.js';
import { onScreen } from './style.js';
import { seconds, word } from './text.js';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export interface Spinner {
  /** Shows this from now on. The time continues if it is the same as before, and starts again for anything else. */
  start(what: string): void;
  /** Takes the line away, so that something can be written. */
  stop(): void;
}

export function makeSpinner(io: Io, enabled = true): Spinner {
  if (!enabled || io.stderr.isTTY !== true || io.env.TERM === 'dumb') return { start() {}, stop() {} };
  let timer: NodeJS.Timeout | undefined;
  let shown: string | undefined;
  let started = 0;
  const stop = (): void => {
    if (!timer) return;
    clearInterval(timer);
    timer = undefined;
    io.stderr.write('\r\u001b[K');
  };
  return {
    start(what) {
      stop();
      if (what !== shown) started = performance.now();
      shown = what;
      let frame = 0;
      const draw = (): void => {
        const text = `${FRAMES[frame++ % FRAMES.length]} ${word(what)} ${seconds(performance.now() - started)}`;
        const fits = text.slice(0, (io.stderr.columns ?? 80) - 1);
        io.stderr.write(`\r\u001b[K${onScreen(io.err.dim(fits))}`);
      };
      // Nothing flickers for what takes no time.
      timer = setInterval(draw, 100);
      timer.unref();
    },
    stop,
  };
}
