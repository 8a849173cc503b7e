/** With `warn`, and without a guard, every sink has the secret: a test that looks for leaks would see one. */
import { afterAll, describe, expect, it } from 'vitest';
import { playAll, print, SPECIAL, titleOf } from './every-sink-checks.js';
import { GUARDS, JUDGES, MODES, type Mode, PLACES, type Setting, settings } from './every-sink-guards.js';
import { play } from './every-sink-setup.js';
import { type Sinks, textOfAll } from './every-sink-sinks.js';

const warning = Object.keys(GUARDS)
  .map((guard) => settings(guard, 'warn'))
  .filter((some) => some.length > 0);

/** What every way of running brings a secret to, from one place or another. */
const ALWAYS = [
  ...['arguments', 'audit', 'errors', 'history', 'inbox', 'journal', 'log', 'observers', 'requests'],
  ...['requests in the trace', 'requests of the sub-agent', 'trace', 'traces'],
];
const CHAT = ['chat stream', 'chat history'];
const OWN: Readonly<Record<Mode, readonly string[]>> = {
  run: ['result', 'cassette'],
  stream: ['result', 'cassette', 'events', 'partials'],
  served: ['cassette', 'HTTP answer', 'HTTP events', 'HTTP events later', 'HTTP history', ...CHAT],
  cached: ['result', 'cache'],
  replayed: ['result', 'cassette'],
  resumed: ['result', 'cassette'],
  retried: ['result', 'cassette'],
};

let played = 0;
afterAll(() => print(`a warning and the text in ${played} combinations of guard, place and way of running`));

describe(`${warning.flat().length} combinations of guard, place and way of running`, () => {
  it.each(warning.map((some) => [titleOf(some), some] as const))(
    '%s: the text stays as without a guard, and a verdict reports it',
    async (_, some) => {
      const missing = await playAll(some, async (setting, sinks) => {
        const wanted = (await withoutGuard(setting)).marked.filter(
          (sink) => !keptBack(setting).includes(sink),
        );
        const marked = sinks.marked();
        const gone = wanted.filter((sink) => !marked.includes(sink));
        if (hasVerdict(sinks) === hasNoVerdict(setting)) gone.push('verdict');
        return gone.length > 0 ? [`${setting.place}, ${setting.mode}: ${gone.join(', ')}`] : [];
      });
      expect(missing.flat()).toEqual([]);
      played += some.length;
    },
  );

  it.each(MODES)('%s: every sink gets the secret if nothing guards it', async (mode) => {
    const reached = new Set<string>();
    for (const setting of settings('contentFilter', 'warn', [mode]))
      for (const sink of (await withoutGuard(setting)).marked) reached.add(sink);
    expect([...reached].sort()).toEqual([...ALWAYS, ...OWN[mode]].sort());
  });

  it('spans of `observability` hold no text, but there are some', async () => {
    for (const setting of settings('contentFilter', 'warn')) {
      const { spans } = await withoutGuard(setting);
      expect(spans, `${setting.place}, ${setting.mode}`).toBeGreaterThan(2);
    }
  });

  it.each(SPECIAL)('%s is what happens everywhere without a guard', async (mode) => {
    const not: string[] = [];
    for (const place of PLACES) {
      const { happened } = await withoutGuard({ guard: 'contentFilter', action: 'none', mode, place });
      if (happened === 0) not.push(place);
    }
    // Nobody keeps an answer that failed.
    expect(not).toEqual(mode === 'cached' ? ['model error'] : []);
  });
});

/** What a sub-agent's guard said comes as progress of its call. */
function hasVerdict(sinks: Sinks): boolean {
  const verdict = /"type":"guard_verdict"[^{]*"verdict":\{[^}]*"action":"warn"/;
  return sinks.got.get('observers')!.some((event) => verdict.test(textOfAll(event)));
}

/** Attempts that fail have no verdicts, and nobody asks a judge about progress, a sub-agent's events among it. */
function hasNoVerdict({ guard, mode, place }: Setting): boolean {
  if (place === 'model error') return true;
  if (!JUDGES.includes(guard)) return false;
  // The tool's first attempt fails with words that are judged.
  return place === 'sub-agent result' || (place === 'update' && mode !== 'retried');
}

interface Unguarded {
  readonly marked: readonly string[];
  readonly spans: number;
  readonly happened: number;
}
const unguarded = new Map<string, Promise<Unguarded>>();

/** What comes of it then: the same for every secret. */
function withoutGuard({ mode, place }: Setting): Promise<Unguarded> {
  const key = `${mode}, ${place}`;
  const known = unguarded.get(key);
  if (known) return known;
  const made = play({ guard: 'contentFilter', action: 'none', mode, place }).then((sinks) => ({
    marked: sinks.marked(),
    spans: sinks.got.get('spans')!.length,
    happened: sinks.happened,
  }));
  unguarded.set(key, made);
  return made;
}

/**
 * What is told at once cannot wait for a judge, and cassettes hold nothing of calls under way that guards would have to
 * judge: both is kept back under any guard.
 */
function keptBack(setting: Setting): readonly string[] {
  const { guard, mode, place } = setting;
  // The errors of first attempts are told in the trace, and so in the journal, as far as guards can be asked at once.
  const asked = [...JUDGES, 'systemPromptLeak', 'toolPolicy'].includes(guard);
  if (mode !== 'retried' || !asked) return keptBackOnce(setting);
  return [...keptBackOnce(setting), 'trace', ...(place === 'update' ? ['journal'] : [])];
}

function keptBackOnce({ guard, place }: Setting): readonly string[] {
  const judged = JUDGES.includes(guard);
  // Only where nothing guards it is looked at before it is taken in.
  if (place === 'queued') return ['inbox'];
  if (place === 'update' || place === 'sub-agent result')
    return judged
      ? ['cassette', 'observers', 'events', 'result', 'HTTP events', 'chat stream']
      : ['cassette'];
  if (!judged) return place === 'model error' ? ['HTTP events', 'chat stream'] : [];
  if (place === 'tool error') return ['log'];
  return place === 'model error'
    ? [
        'observers',
        'journal',
        'log',
        'events',
        'HTTP events',
        'chat stream',
        'errors',
        'cassette',
        'result',
        'trace',
      ]
    : [];
}
