/** Waits for a store; a run that is aborted does not. */

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
