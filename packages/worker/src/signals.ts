/** Signals that end the process: all of its workers leave first. */
import os from 'node:os';

type Leave = () => Promise<void>;

/** One process has one handler for a signal, however many workers it has. */
const workers = new Map<NodeJS.Signals, Set<Leave>>();

/** Calls `leave` on any of the signals, until the returned function is called. When all have left, the process ends. */
export function leaveOn(signals: readonly NodeJS.Signals[], leave: Leave): () => void {
  for (const signal of signals) {
    const all = workers.get(signal) ?? new Set();
    all.add(leave);
    if (workers.has(signal)) continue;
    workers.set(signal, all);
    process.once(signal, end);
  }
  return () => {
    for (const signal of signals) {
      const all = workers.get(signal);
      if (!all?.delete(leave) || all.size > 0) continue;
      workers.delete(signal);
      process.off(signal, end);
    }
  };
}

async function end(signal: NodeJS.Signals): Promise<void> {
  const all = [...(workers.get(signal) ?? [])];
  // Another signal ends the process at once.
  workers.delete(signal);
  await Promise.all(all.map((leave) => leave()));
  process.kill(process.pid, signal);
  // The first process of a container isn't ended by a signal, unless it handles it.
  if (process.pid === 1 && process.listenerCount(signal) === 0)
    process.exit(128 + os.constants.signals[signal]);
}
