/** What a guardrail removes is in no sink, wherever it came in and however the run goes. */
import { afterAll, describe, expect, it } from 'vitest';
import { leaksIn, print, SPECIAL, titleOf } from './every-sink-checks.js';
import { GUARDS, PLACES, REMOVING, type Setting, settings } from './every-sink-guards.js';

const names = Object.keys(GUARDS);
const removing = names
  .flatMap((guard) => REMOVING.map((action) => settings(guard, action)))
  .filter((some) => some.length > 0);

let played = 0;
let sent = 0;
afterAll(() => {
  print(`nothing left in any sink of ${played} combinations of guard, action, place and way of running`);
  print(`nothing left in the requests of ${sent} combinations with a guard at \`request\``);
});

describe(`${removing.flat().length} combinations of guard, action, place and way of running`, () => {
  it.each(removing.map((some) => [titleOf(some), some] as const))(
    '%s: nothing is left in any sink',
    async (_, some) => {
      const { leaks, happened } = await leaksIn(some);
      expect(leaks).toEqual([]);
      for (const mode of SPECIAL) expect(happened.get(mode), mode).toBeGreaterThan(0);
      played += some.length;
    },
  );
});

// The points at which no guard judges unless it is told to.
const SEARCHING = ['pii', 'secrets', 'contentFilter', 'egress', 'guardrail, check', 'guardrail, judge'];
const pointed = (point: 'final' | 'request', guard: string): Setting[] =>
  REMOVING.filter((action) => point === 'final' || action !== 'feedback').flatMap((action) =>
    settings(guard, action)
      .filter(({ place }) => (point === 'final' ? ['final', 'structured'] : PLACES_SENT).includes(place))
      .map((setting) => ({ ...setting, points: [point] })),
  );
/** An answer that ends a run, and what it failed with, is sent to nobody. */
const PLACES_SENT: readonly string[] = PLACES.filter((place) => place !== 'model error');

describe('guards at other points', () => {
  it.each(SEARCHING)('%s at `final`: nothing is left in any sink', async (guard) => {
    const some = pointed('final', guard);
    const { leaks } = await leaksIn(some);
    expect(leaks).toEqual([]);
    played += some.length;
  });

  it.each(SEARCHING)('%s at `request`: nothing is left in what models are sent', async (guard) => {
    const some = pointed('request', guard)
      .filter(({ mode }) => mode === 'run' || mode === 'resumed')
      // No provider is sent details, and a judge of requests is not shown them.
      .filter(({ place }) => guard !== 'guardrail, judge' || place !== 'details');
    const { leaks } = await leaksIn(some, (sink) => sink.startsWith('requests'));
    expect(leaks).toEqual([]);
    sent += some.length;
  });
});
