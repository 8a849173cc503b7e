/** What it costs to keep a session, and whether that stays the same as it grows. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, probe } from '../lib/compare.mjs';
import { byRound, difference, ratio } from '../lib/stats.mjs';
import { ownFolder } from '../work/folder.mjs';

const [SHORT, LONG] = [10, 1000];
const LENGTHS = { full: [SHORT, 100, LONG], quick: [SHORT, LONG] };
const RAW = 'raw writeSync';
const REOPENED = 'raw appendFileSync';
const INSERTED = 'raw SQLite insert';
const MEMORY = 'memory store';
const STORES = [
  { label: 'file store', store: 'file', limit: 1.8, bytes: 500 },
  // Not limited by lines in a file: a bare INSERT already takes up to three times as long as such a line.
  { label: 'SQLite store', store: 'sqlite', inserts: 1.6 },
];

export async function run({ settings, progress }) {
  const lengths = settings.quick ? LENGTHS.quick : LENGTHS.full;
  const timed = await timedInTurns(lengths, settings, progress);
  const weighed = await probe(
    STORES.flatMap((store) => bytesRows(store, lengths)),
    1,
    progress,
  );
  const opened = await probe(
    ['memory', 'file', 'sqlite'].flatMap((store) =>
      OPENED.map((turns) => ({
        label: openedLabel(store, turns),
        contender: 'allium-stores',
        job: 'opening',
        probe: { turns, store },
      })),
    ),
    settings.quick ? 1 : 3,
    progress,
  );
  return {
    title: 'Stores',
    about:
      'Runs with one tool call per turn, each in a new session. Raw: the messages of such a run as JSON lines in a new file, by `fs.writeSync` on a descriptor that is kept open, or by `fs.appendFileSync`, which opens and closes for every message, or as one row per turn in an SQLite database, a transaction each. Nobody waits for the disk. A store and what it is compared with take turns in one process, for about 30 ms each, in folders beside each other from which nothing is removed before all is measured. "Persistence" is the time with the store less the time of the same run with the memory store; "whole turn" is the time with the store, the agent\'s own included. Bytes are what 2,000 turns leave on disk, beside the JSON of their messages. "Opened" is `session.pending()` of a session of that length through a new handle, and `messages` is `session.messages()`, the median of five.',
    sections: [
      ...STORES.flatMap(({ store, inserts }) => {
        const { clock, cpu } = timed.get(store);
        const shown = { variant: 'turns', baseline: floorOf(inserts) };
        return [
          { results: clock, unit: 'µs per turn', ...shown },
          { results: cpu, unit: 'µs of CPU per turn', ...shown },
        ];
      }),
      { results: weighed, unit: 'bytes', variant: 'per turn' },
      { results: opened, unit: 'ms', variant: 'asked' },
    ],
    checks: [
      ...STORES.flatMap((store) => [
        ...timeChecks(timed.get(store.store), store, lengths),
        ...bytesChecks(weighed, store, lengths),
      ]),
      ...lengths.map((turns) => floor(timed.get('sqlite').clock, turns)),
      ...['memory', 'file', 'sqlite'].flatMap((store) =>
        OPENED.flatMap((turns) => {
          const label = openedLabel(store, turns);
          return [
            atMost(`${label}, opened`, cell(opened, label, 'openMs'), 40, 'ms'),
            atMost(
              `${label}, the first run with a window of 100 messages`,
              cell(opened, label, 'runMs'),
              40,
              'ms',
            ),
          ];
        }),
      ),
    ],
  };
}

/** What a row of the table shows, by the name of its figure. */
const SIDES = { writeSync: RAW, appendFileSync: REOPENED, inserts: INSERTED, memory: MEMORY };
const BESIDE = {
  file: ['writeSync', 'appendFileSync', 'memory', 'file'],
  sqlite: ['inserts', 'writeSync', 'memory', 'sqlite'],
};

/** By store, the rows of its processes: what they took by the clock, and what of the processor. */
async function timedInTurns(lengths, settings, progress) {
  const { warmUp, sampleMs, samples } = settings.timing;
  // Fewer runs than elsewhere, since each leaves a file, but more samples.
  const timing = { warmUp: { ...warmUp, units: warmUp.units / 3 }, sampleMs, samples: 2 * samples };
  const folder = ownFolder();
  const rows = STORES.flatMap(({ store }) =>
    lengths.map((turns) => ({
      label: `${store} ${turns}`,
      contender: 'stores-in-turns',
      job: 'inTurns',
      probe: { store, turns, folder, timing },
    })),
  );
  const taken = await probe(rows, Math.min(settings.rounds, 5), progress);
  const row = (store, label, figure) => {
    const of = (turns) => taken.find((one) => one.label === `${store} ${turns}`);
    const failed = lengths.map(of).find(({ error }) => error);
    if (failed) return { label, error: failed.error };
    const cells = new Map(lengths.map((turns) => [String(turns), of(turns).cells.get(figure)]));
    return { label, about: of(lengths[0]).about, cells };
  };
  return new Map(
    STORES.map(({ label, store }) => {
      const rowsOf = (figure) => BESIDE[store].map((side) => row(store, SIDES[side] ?? label, figure(side)));
      return [store, { clock: rowsOf((side) => side), cpu: rowsOf((side) => `${side}Cpu`) }];
    }),
  );
}

/** What SQLite itself takes, whatever stands on it. */
function floor(timed, turns) {
  const [row, line] = [INSERTED, RAW].map((label) => cell(timed, label, String(turns)));
  return reported(`${INSERTED} to ${RAW}, ${turns} turns`, row && line && ratio(row, line), '×');
}

const OPENED = [100, 10_000];
const openedLabel = (store, turns) => `${store}, a session of ${turns} turns`;

const bytesLabel = (label, turns) => `${label}, ${turns} turns`;

function bytesRows({ label, store }, lengths) {
  return lengths.map((turns) => ({
    label: bytesLabel(label, turns),
    contender: 'allium-stores',
    job: 'bytes',
    probe: { turns, total: 2 * LONG, store },
  }));
}

function timeChecks({ clock, cpu }, { label, limit, inserts }, lengths) {
  const of = (row, turns, from = clock) => cell(from, row, String(turns));
  const persistence = (turns, from = clock) => {
    const [stored, remembered] = [of(label, turns, from), of(MEMORY, turns, from)];
    const added = stored && remembered && difference(stored, remembered);
    // No store is faster than none: such a figure is noise, and no target reached.
    return added && added.median > 0 ? added : undefined;
  };
  const to = (figure, turns, row, from) =>
    figure && of(row, turns, from) && ratio(figure, of(row, turns, from));
  const grown = (figure) => figure(LONG) && figure(SHORT) && ratio(figure(LONG), figure(SHORT));
  return [
    ...lengths.map((turns) => {
      const [name, figure] = [
        `${label}, persistence to ${RAW}, ${turns} turns`,
        to(persistence(turns), turns, RAW),
      ];
      return limit === undefined ? reported(name, figure, '×') : atMost(name, figure, limit, '×');
    }),
    ...(inserts === undefined
      ? []
      : lengths.map((turns) =>
          atMost(
            `${label}, persistence to ${INSERTED}, ${turns} turns`,
            to(persistence(turns), turns, INSERTED),
            inserts,
            '×',
          ),
        )),
    ...lengths.flatMap((turns) => [
      reported(
        `${label}, persistence to ${floorOf(inserts)}, CPU, ${turns} turns`,
        to(persistence(turns, cpu), turns, floorOf(inserts), cpu),
        '×',
      ),
      ...(inserts === undefined
        ? [
            reported(
              `${label}, persistence to ${REOPENED}, ${turns} turns`,
              to(persistence(turns), turns, REOPENED),
              '×',
            ),
          ]
        : []),
      reported(`${label}, whole turn to ${RAW}, ${turns} turns`, to(of(label, turns), turns, RAW), '×'),
      reported(`${label}, persistence, ${turns} turns`, persistence(turns), 'µs'),
    ]),
    atMost(
      `${label}, whole turn, ${LONG} turns to ${SHORT}`,
      grown((turns) => of(label, turns)),
      1.15,
      '×',
    ),
  ];
}

const floorOf = (inserts) => (inserts === undefined ? RAW : INSERTED);

function bytesChecks(weighed, { label, bytes }, lengths) {
  const of = (turns, name) => cell(weighed, bytesLabel(label, turns), name);
  const toJson = (turns) => {
    const [stored, json] = ['bytesPerTurn', 'jsonPerTurn'].map((name) => of(turns, name));
    return stored && json && ratio(stored, json);
  };
  const [few, many] = [toJson(SHORT), toJson(LONG)];
  return [
    ...lengths.map((turns) =>
      atMost(`${label}, bytes to the JSON of the messages, ${turns} turns`, toJson(turns), 2, '×'),
    ),
    ...(bytes === undefined
      ? []
      : lengths.map((turns) =>
          atMost(`${label}, bytes per turn, ${turns} turns`, of(turns, 'bytesPerTurn'), bytes, 'B'),
        )),
    // To their JSON, since a long session has longer ids in it.
    atMost(
      `${label}, bytes to that JSON, ${LONG} turns to ${SHORT}`,
      few && many && byRound(many, few, (a, b) => a / b),
      1.15,
      '×',
    ),
  ];
}
