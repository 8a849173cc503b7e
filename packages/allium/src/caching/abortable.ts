/** Waits for a store, but not longer than the run that asks. */

export function abortable<T>(value: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    const settled =
      <V>(then: (value: V) => void) =>
      (result: V) => {
        signal.removeEventListener('abort', aborted);
        then(result);
      };
    value.then(settled(resolve), settled(reject));
    if (signal.aborted) aborted();
    else signal.addEventListener('abort', aborted);
  });
}
