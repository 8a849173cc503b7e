/** What the every-sink tests do with their settings. */
import { GUARDS, MODES, type Mode, type Setting } from './every-sink-guards.js';
import { play } from './every-sink-setup.js';
import type { Sinks } from './every-sink-sinks.js';

/** Ways of running that are nothing but a run unless something happens in them. */
export const SPECIAL: readonly Mode[] = ['served', 'cached', 'replayed', 'resumed', 'retried'];

/**
 * Plays them, and returns what `look` makes of each, in order. Some at a time, as retries and observers take their time;
 * none is kept, for what all of them wrote together is more than a collector of garbage likes.
 */
export async function playAll<T>(
  some: readonly Setting[],
  look: (setting: Setting, sinks: Sinks) => T | Promise<T>,
): Promise<T[]> {
  const seen: T[] = [];
  const left = some.entries();
  const player = async (): Promise<void> => {
    for (const [i, setting] of left) seen[i] = await look(setting, await play(setting));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, player));
  return seen;
}

const AT_ONCE = 16;

/** The sinks in which something is left, by setting, and how often each way of running was what it is called. */
export async function leaksIn(some: readonly Setting[], only = (_sink: string): boolean => true) {
  const happened = new Map(MODES.map((mode) => [mode, 0]));
  const leaks = await playAll(some, (setting, sinks) => {
    happened.set(setting.mode, happened.get(setting.mode)! + sinks.happened);
    const excepted = GUARDS[setting.guard]!.except?.(setting) ?? [];
    const marked = sinks.marked().filter((sink) => only(sink) && !excepted.includes(sink));
    return marked.length > 0 ? [`${setting.place}, ${setting.mode}: ${marked.join(', ')}`] : [];
  });
  return { leaks: leaks.flat(), happened };
}

export function titleOf([first, ...more]: readonly Setting[]): string {
  return `${first!.guard}, ${first!.action} (${1 + more.length})`;
}

/** Prints it into the run's own output, once the tests of a file are over. */
export function print(line: string): void {
  process.stdout.write(`every sink: ${line}\n`);
}
