/** What a guardrail removes is in no sink, wherever it came in and however the run goes. */
import { maxInputTokens } from '@allium/guardrails';
import type { ModelContext } from 'allium';
import { afterAll, describe, expect, it } from 'vitest';
import { leaksIn, playAll, print, SPECIAL, titleOf } from './every-sink-checks.js';
import { ENDS, GUARDS, MARK, PLACES, REMOVING, type Setting, settings } from './every-sink-guards.js';
import { textOfAll } from './every-sink-sinks.js';

const names = Object.keys(GUARDS);
/** What HTTP shows is made of the journal and the events: it is looked at with one action of each guard. */
const removing = names.flatMap((guard) => {
  const actions = REMOVING.filter((action) => settings(guard, action).length > 0);
  return actions.map((action) =>
    settings(guard, action).filter(({ mode }) => mode !== 'served' || action === actions[0]),
  );
});

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
      const { guard, action } = some[0]!;
      const never = GUARDS[guard]!.never?.[action] ?? [];
      const meant = SPECIAL.filter((mode) => some.some((setting) => setting.mode === mode));
      expect(meant.filter((mode) => happened.get(mode) === 0)).toEqual(never);
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

describe('maxInputTokens', () => {
  it('sends nothing that makes a request too long', async () => {
    const some = settings('contentFilter', 'warn').filter(
      // A sub-agent's requests are its own, and an error is in none.
      ({ place }) => !place.startsWith('sub-agent') && place !== 'model error' && !ENDS.includes(place),
    );
    // What is too long has the secret in it.
    const count = ({ messages }: ModelContext) => (MARK.test(textOfAll(messages)) ? 2 : 1);
    for (const action of ['stop', 'warn'] as const) {
      const instead = () => [maxInputTokens({ limit: 1, count, action })];
      const settled = some.map((one) => ({ ...one, instead, look: 'requests' as const }));
      const told = await playAll(settled, (_, sinks) => sinks.marked().includes('requests'));
      // Nobody is sent progress.
      const wanted = settled.map(({ place }) => action === 'warn' && place !== 'update');
      const titles = settled.map(({ place, mode }) => `${action}, ${place}, ${mode}`);
      expect(titles.filter((_, i) => told[i] !== wanted[i])).toEqual([]);
      if (action === 'stop') sent += some.length;
    }
  });
});

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
      .filter(({ place }) => guard !== 'guardrail, judge' || place !== 'details')
      .map((setting): Setting => ({ ...setting, look: 'requests' }));
    const { leaks } = await leaksIn(some, (sink) => sink.startsWith('requests'));
    expect(leaks).toEqual([]);
    sent += some.length;
  });
});
