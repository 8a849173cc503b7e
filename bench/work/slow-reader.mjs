/** Reads a stream far slower than it is made and reports how much the process grew meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';

const MEGABYTE = 1024 * 1024;

export async function readSlowly(stream, { everyMs, seconds }) {
  let first;
  let peak = 0;
  let read = 0;
  const end = performance.now() + seconds * 1000;
  for await (const _ of stream) {
    read += 1;
    // The first events come while code is still being loaded and compiled; growth counts from the 50th.
    if (read === 50) {
      globalThis.gc();
      first = process.memoryUsage.rss();
    }
    if (read > 50) peak = Math.max(peak, process.memoryUsage.rss());
    if (performance.now() > end) break;
    await sleep(everyMs);
  }
  return { growthMB: (peak - first) / MEGABYTE, read };
}
