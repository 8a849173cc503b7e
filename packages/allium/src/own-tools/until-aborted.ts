/** Waits for work that takes no signal. */

/** The outcome of the work, or the signal's reason if that comes first. The work itself continues. */
export function untilAborted<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    const settled = <V>(settle: (value: V) => void) => {
      return (value: V): void => {
        signal.removeEventListener('abort', aborted);
        settle(value);
      };
    };
    work.then(settled(resolve), settled(reject));
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted);
  });
}
