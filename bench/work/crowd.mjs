/** Holds many runs in mid-flight at once and weighs them. */

/**
 * Starts `runs` runs, stops each at turn `pauseAt`, weighs the heap while all of them wait there,
 * lets them go and weighs what is left when all have finished.
 *
 * @param {(pause: (turn: number) => void | Promise<void>) => () => Promise<unknown>} prepare makes the function that
 *   starts one run; its model awaits `pause` at the start of each answer
 */
export async function weighCrowd(prepare, { runs, pauseAt }) {
  let arrived = 0;
  let allArrived;
  let open;
  const everyone = new Promise((resolve) => {
    allArrived = resolve;
  });
  const gate = new Promise((resolve) => {
    open = resolve;
  });
  const start = prepare((turn) => {
    if (turn !== pauseAt) return;
    arrived += 1;
    if (arrived === runs) allArrived();
    return gate;
  });
  const before = heapNow();
  const pending = Array.from({ length: runs }, () => start().then(() => undefined));
  // A run that fails before the gate would otherwise be waited for in vain.
  await Promise.race([everyone, Promise.all(pending)]);
  const during = heapNow();
  open();
  await Promise.all(pending);
  pending.length = 0;
  const after = heapNow();
  return { bytesPerRun: (during - before) / runs, retainedPerRun: (after - before) / runs };
}

function heapNow() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
