/** A thousand sessions at once: in memory beside pi, and on Postgres beside plain INSERTs of the same messages. */
import { atLeast, atMost, reported } from '../lib/checks.mjs';
import { cell, probe } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';
import { ROUNDS } from '../work/many.mjs';

const [SESSIONS, TURNS] = [1000, 10];
const MEMORY = 'allium, memory store';
const PI = 'pi';
const POSTGRES = 'allium, Postgres store';
const INSERTS = 'plain INSERTs';
const ALONE = 'allium, one session on Postgres';

export async function run({ settings, progress }) {
  const crowd = { turns: TURNS, sessions: SESSIONS };
  const rows = [
    { label: MEMORY, contender: 'allium-stores', job: 'many', probe: { ...crowd, store: 'memory' } },
    { label: PI, contender: 'pi', job: 'many', probe: crowd },
    { label: POSTGRES, contender: 'allium-stores', job: 'many', probe: { ...crowd, store: 'postgres' } },
    { label: INSERTS, contender: 'raw-append', job: 'manyInserts', probe: crowd },
  ];
  const taken = await probe(rows, settings.quick ? 1 : 3, progress);
  const alone = await probe(
    [{ label: ALONE, contender: 'allium-stores', job: 'statements', probe: { turns: 20 } }],
    1,
    progress,
  );
  const to = (name, one, other) => {
    const [a, b] = [one, other].map((label) => cell(taken, label, name));
    return a && b && ratio(a, b);
  };
  return {
    title: 'Many sessions',
    about: `${SESSIONS.toLocaleString('en')} sessions of ${TURNS} turns at once, ${ROUNDS} times with new ones in one process; all of them stay in memory. "cold" is the first time. In the next four ("warming") the compiler still works; the others are "warm". CPU includes collecting garbage and compiling; that of the Postgres server is not in it. The plain INSERTs are one row per turn with the messages of that turn, each session waiting for its own, over a pool of ten connections like the store's.`,
    sections: [
      { results: taken, unit: 'µs of CPU per turn, turns per second', variant: 'figure' },
      { results: alone, unit: 'statements', variant: 'figure' },
    ],
    checks: [
      atMost('memory, CPU per turn to pi, cold', to('coldCpu', MEMORY, PI), 0.5, '×'),
      reported('memory, CPU per turn to pi, warming', to('warmingCpu', MEMORY, PI), '×'),
      atMost('memory, CPU per turn to pi, warm', to('warmCpu', MEMORY, PI), 0.5, '×'),
      atLeast(
        'Postgres, turns per second to plain INSERTs, cold',
        to('coldPerSecond', POSTGRES, INSERTS),
        0.6,
        '×',
      ),
      atLeast(
        'Postgres, turns per second to plain INSERTs, warm',
        to('warmPerSecond', POSTGRES, INSERTS),
        0.6,
        '×',
      ),
      atMost('Postgres, statements per turn, one session alone', cell(alone, ALONE, 'perTurn'), 1, ''),
      reported('Postgres, statements per run besides', cell(alone, ALONE, 'perRun'), ''),
      reported('Postgres, statements per turn, all sessions', cell(taken, POSTGRES, 'perTurn'), ''),
    ],
  };
}
