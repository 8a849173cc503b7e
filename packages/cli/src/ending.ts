/** The end of the process from outside: SIGTERM and SIGHUP leave a run where it is, to be gone on with. */
import type { Store } from 'allium';
import { EXIT } from './outcome.js';

export type EndingSignal = 'SIGTERM' | 'SIGHUP';

/** Why everything is aborted when the process is told to end. Ctrl-C is something else: that ends the run itself. */
export class ProcessEnding extends Error {
  override readonly name = 'AbortError';

  constructor(readonly by: EndingSignal) {
    super(`The process was told to end (${by}).`);
  }
}

export function endingOf({ aborted, reason }: AbortSignal): EndingSignal | undefined {
  return aborted && reason instanceof ProcessEnding ? reason.by : undefined;
}

/** Other programs read who ended it from the code, as shells tell it: 128 and the number of the signal. */
export function exitCodeOfEnding(signal: AbortSignal): number | undefined {
  const by = endingOf(signal);
  return by && (by === 'SIGTERM' ? EXIT.terminated : EXIT.hungUp);
}

/**
 * The store until the process is told to end. From then on nothing is written: the run is aborted, and its tools and
 * middleware may clean up, but in the journal it stays open, as after a crash. So another process can go on with it.
 */
export function untilEnding(store: Store, signal: AbortSignal): Store {
  const append: Store['append'] = async (...args) => {
    const by = endingOf(signal);
    if (by) throw new ProcessEnding(by);
    return store.append(...args);
  };
  return new Proxy(store, {
    get(target, key) {
      if (key === 'append') return append;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
