/** Waits for work that takes no signal. */

/** The work's outcome, or the signal's reason if that comes first. The work itself goes on; its failure is not lost on anyone else. */
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
