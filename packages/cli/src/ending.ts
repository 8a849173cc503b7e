/** Ends the process on SIGTERM and SIGHUP, and leaves its run as it is, so that it can be resumed. */
import type { Store } from 'allium';
import { EXIT } from './outcome.js';

export type EndingSignal = 'SIGTERM' | 'SIGHUP';

/** Why everything is aborted when the process is told to end. Ctrl-C is different: it ends the run itself. */
export class ProcessEnding extends Error {
  override readonly name = 'AbortError';

  constructor(readonly by: EndingSignal) {
    super(`The process was told to end (${by}).`);
  }
}

export function endingOf({ aborted, reason }: AbortSignal): EndingSignal | undefined {
  return aborted && reason instanceof ProcessEnding ? reason.by : undefined;
}

/** Other programs read the signal from the exit code, as in shells: 128 plus its number. */
export function exitCodeOfEnding(signal: AbortSignal): number | undefined {
  const by = endingOf(signal);
  return by && (by === 'SIGTERM' ? EXIT.terminated : EXIT.hungUp);
}

/**
 * The store until the process is told to end. From then on nothing is written: the run is aborted, and its tools and
 * middleware may clean up, but in the journal it stays open, as after a crash. So another process can continue it.
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
