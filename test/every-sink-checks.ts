/** What the every-sink tests do with their settings. */
import { GUARDS, MODES, type Mode, type Setting } from './every-sink-guards.js';
import { play } from './every-sink-setup.js';
import type { Sinks } from './every-sink-sinks.js';

/** Ways of running that are nothing but a run unless something happens in them. */
export const SPECIAL: readonly Mode[] = ['served', 'cached', 'replayed', 'resumed', 'retried'];

/** Some at a time, as retries and observers take their time. */
export async function playAll(some: readonly Setting[]): Promise<[Setting, Sinks][]> {
  const left = [...some];
  const played: [Setting, Sinks][] = [];
  while (left.length > 0)
    played.push(
      ...(await Promise.all(
        left.splice(0, 16).map(async (setting): Promise<[Setting, Sinks]> => [setting, await play(setting)]),
      )),
    );
  return played;
}

/** The sinks in which something is left, by setting, and how often each way of running was what it is called. */
export async function leaksIn(some: readonly Setting[], only = (_sink: string): boolean => true) {
  const leaks: string[] = [];
  const happened = new Map(MODES.map((mode) => [mode, 0]));
  for (const [setting, sinks] of await playAll(some)) {
    happened.set(setting.mode, happened.get(setting.mode)! + sinks.happened);
    const excepted = GUARDS[setting.guard]!.except?.(setting) ?? [];
    const marked = sinks.marked().filter((sink) => only(sink) && !excepted.includes(sink));
    if (marked.length > 0) leaks.push(`${setting.place}, ${setting.mode}: ${marked.join(', ')}`);
  }
  return { leaks, happened };
}

export function titleOf([first, ...more]: readonly Setting[]): string {
  return `${first!.guard}, ${first!.action} (${1 + more.length})`;
}

/** Prints it into the run's own output, once the tests of a file are over. */
export function print(line: string): void {
  process.stdout.write(`every sink: ${line}\n`);
}
