/** What one more middleware costs per turn. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { byRound, ratio } from '../lib/stats.mjs';

const TURNS = 100;
const LAYERS = 10;

/** Microseconds per turn, and what a bare turn took where they were set. */
const LAYER_LIMIT = 1;
const PAIR_LIMIT = 0.35;
const BARE_TURN = 1.4;

const ROWS = [
  ['koa-compose plain', 'koa-compose', 'plain'],
  ['koa-compose async', 'koa-compose', 'async'],
  ['allium plain', 'allium', 'plain'],
  ['allium async', 'allium', 'async'],
  ['allium pairs', 'allium', 'pairs'],
];

/** No layers, nothing around them: what the machine is worth today. */
const BARE = {
  label: 'bare loop',
  contender: 'bare',
  job: 'turns',
  variants: [{ label: '0', params: { turns: TURNS }, units: TURNS }],
};

export async function run({ settings, progress }) {
  const rows = ROWS.map(([label, contender, kind]) => ({
    label,
    contender,
    job: 'layers',
    variants: [0, LAYERS].map((layers) => ({
      label: String(layers),
      params: { turns: TURNS, layers, kind },
      units: TURNS,
    })),
  }));
  const results = await compare([BARE, ...rows], settings, progress, { together: 'cases' });
  const perLayer = (label) => {
    const none = cell(results, label, '0');
    const many = cell(results, label, String(LAYERS));
    return none && many && byRound(many, none, (b, a) => (b - a) / LAYERS);
  };
  const bare = cell(results, 'bare loop', '0');
  const inBareTurns = (label) => {
    const added = perLayer(label);
    return added && bare && ratio(added, bare);
  };
  const unit = 'µs';
  const checks = (what, label, limit) => [
    atMost(`${what} adds per turn`, perLayer(label), limit, unit),
    atMost(`${what}, to a bare turn`, inBareTurns(label), Number((limit / BARE_TURN).toFixed(3)), '×'),
  ];
  return {
    title: 'Per layer',
    about: `Runs of ${TURNS} turns with 0 and ${LAYERS} middleware around both the model call and the tool call. \`plain\` is \`(ctx, next) => next()\`, \`async\` is \`async (ctx, next) => { await next(); }\`, \`pairs\` are empty sync before and after hooks. The limits were set beside a bare turn of ${BARE_TURN} µs; how long one takes here is the first row. So each is checked twice: as it stands, and as a share of a bare turn.`,
    sections: [{ results, unit: 'µs per turn', variant: 'layers' }],
    checks: [
      ...checks('one plain layer', 'allium plain', LAYER_LIMIT),
      ...checks('one async layer', 'allium async', LAYER_LIMIT),
      ...checks('one sync before/after pair', 'allium pairs', PAIR_LIMIT),
      reported('koa-compose: one plain layer', perLayer('koa-compose plain'), unit),
      reported('koa-compose: one async layer', perLayer('koa-compose async'), unit),
    ],
  };
}
