// Draws what the model is sent at turn 1, 50 and 500 of a long run, and writes the table beside it, in
// docs/guide/long-runs.md. A test keeps both equal to what this makes.
//   npm run build && node scripts/long-runs-picture.mjs

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KINDS, LISTS, MAX_TOKENS, measure, total } from './long-runs-sizes.mjs';
import { root } from './repository.mjs';

/** @import { Kind, Sizes } from './long-runs-sizes.mjs' */

export const picturePath = join(root, 'docs/guide/images/long-runs.svg');
export const pagePath = join(root, 'docs/guide/long-runs.md');

/** @returns {Promise<Map<string, Sizes>>} */
export async function measureAll() {
  const measured = new Map();
  for (const [name, list] of Object.entries(LISTS)) measured.set(name, await measure(list));
  return measured;
}

// The table

const BEGIN = '<!-- Written by scripts/long-runs-picture.mjs. Do not edit. -->\n';
const END = '<!-- The end of what is written. -->';

/** @returns {string} The page with the table of these sizes in it. */
export function withTable(/** @type {string} */ page, /** @type {Map<string, Sizes>} */ measured) {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${pagePath} has no place for the table.`);
  return `${before}${BEGIN}\n${table(measured)}\n\n${END}${after}`;
}

/** What is read from a cache costs a tenth, with the providers that publish a price for it. */
const CACHED = 0.1;

function table(/** @type {Map<string, Sizes>} */ measured) {
  const rows = [...measured].map(([name, { turns, sent, seen, calls, read }]) => {
    const names = name === 'nothing' ? name : name.replace(/\w+/g, '`$&`');
    const cost = sent - seen + seen * CACHED + read;
    const cells = [names, number(total(sizesAt(turns, 50))), number(total(sizesAt(turns, 500)))];
    cells.push(millions(sent + read), `${Math.round((100 * seen) / sent)} %`, millions(cost), String(calls));
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| middleware, in this order | turn 50 | turn 500 | all turns | seen before | all turns, cached | summaries |',
    '|---|--:|--:|--:|--:|--:|--:|',
    ...rows,
  ].join('\n');
}

const millions = (/** @type {number} */ tokens) => `${(tokens / 1e6).toFixed(2)} M`;
const number = (/** @type {number} */ value) => String(value).replace(/(?<=\d)(?=(\d{3})+$)/g, ',');

function sizesAt(/** @type {Sizes['turns']} */ turns, /** @type {number} */ turn) {
  const sizes = turns[turn - 1];
  if (!sizes) throw new Error(`There is no turn ${turn}.`);
  return sizes;
}

// The picture

const SHOWN_TURNS = [1, 50, 500];
const SHOWN_LISTS = ['nothing', 'compaction, todoList', 'compaction, contextEditing, todoList'];

/** @type {Record<Kind, { name: string, fill: string }>} */
const LOOKS = {
  system: { name: 'system prompt', fill: '#64748b' },
  tools: { name: 'tool schemas', fill: '#94a3b8' },
  summary: { name: 'summary', fill: '#8b5cf6' },
  pinned: { name: 'pinned task', fill: '#d97706' },
  messages: { name: 'answers and calls', fill: '#2563eb' },
  results: { name: 'tool results', fill: '#0f766e' },
  todos: { name: 'todo list', fill: '#db2777' },
};

/** Tokens in one row of a bar; longer bars go on in the next row. */
const ROW_TOKENS = 32_000;
const SCALE = 0.018;
const LEFT = 262;
const WIDTH = 920;
const BAR = 20;
/** From one row of a bar to the next, and from a bar to the next bar. */
const NEXT_ROW = BAR + 2;
const NEXT_BAR = BAR + 9;

/** @returns {string} The picture, as SVG. */
export function picture(/** @type {Map<string, Sizes>} */ measured) {
  let y = 142;
  const groups = SHOWN_TURNS.map((turn) => {
    const parts = [label(20, y + 15, `Turn ${turn}`, 'turn')];
    for (const name of SHOWN_LISTS) {
      const sizes = sizesAt(measured.get(name)?.turns ?? [], turn);
      parts.push(label(LEFT - 12, y + 15, name, 'list'), bar(sizes, y));
      y += NEXT_BAR + (Math.ceil(total(sizes) / ROW_TOKENS) - 1) * NEXT_ROW;
    }
    y += 22;
    return parts.join('\n');
  });
  const height = y - 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">What the model is sent at turn 1, 50 and 500 of a run</title>
<desc id="description">${description(measured)}</desc>
<style>${style}</style>
<rect class="page" width="${WIDTH}" height="${height}" rx="8"/>
${label(20, 30, 'What the model is sent, in tokens', 'title')}
${label(20, 51, `A run of 500 turns, with different middleware. A bar that is longer than ${number(ROW_TOKENS)} goes on in the next row.`, 'note')}
${legend()}
${axis(height - 16)}
${groups.join('\n')}
</svg>
`;
}

const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2937 }
.title { font-size: 17px; font-weight: 600 }
.note { fill: #6b7280 }
.turn { font-size: 15px; font-weight: 600 }
.list { text-anchor: end; font-size: 12px }
.tick { text-anchor: middle; font-size: 11px; fill: #6b7280 }
.total { font-weight: 600; font-size: 12px; paint-order: stroke; stroke: #fff; stroke-width: 5px }
.inside { fill: #fff; font-size: 11px }
.page { fill: #fff; stroke: #d1d5db }
.grid { stroke: #e5e7eb }
@media (prefers-color-scheme: dark) {
text { fill: #e5e7eb }
.tick, .note { fill: #9ca3af }
.total { stroke: #0d1117 }
.inside { fill: #fff }
.page { fill: #0d1117; stroke: #30363d }
.grid { stroke: #262c36 }
}
`;

function description(/** @type {Map<string, Sizes>} */ measured) {
  return SHOWN_LISTS.map((name) => {
    const sizes = SHOWN_TURNS.map((turn) => number(total(sizesAt(measured.get(name)?.turns ?? [], turn))));
    return `With ${name}: ${sizes.join(', ')} tokens.`;
  }).join(' ');
}

function legend() {
  let x = 20;
  return KINDS.map((kind) => {
    const { name, fill } = LOOKS[kind];
    const parts = `<rect x="${x}" y="67" width="12" height="12" rx="2" fill="${fill}"/>\n${label(x + 18, 77.5, name, 'key')}`;
    x += 46 + name.length * 6.8;
    return parts;
  }).join('\n');
}

function axis(/** @type {number} */ bottom) {
  const lines = [];
  for (let tokens = 0; tokens <= ROW_TOKENS; tokens += 8000) {
    const x = at(tokens);
    lines.push(`<line class="grid" x1="${x}" x2="${x}" y1="126" y2="${bottom}"/>`);
    lines.push(
      label(x, 118, tokens === MAX_TOKENS ? `${number(tokens)} = maxTokens` : number(tokens), 'tick'),
    );
  }
  return lines.join('\n');
}

/** A request as a bar, kind by kind, which goes on below where the row ends. */
function bar(/** @type {Record<Kind, number>} */ sizes, /** @type {number} */ top) {
  const parts = [];
  let used = 0;
  for (const kind of KINDS) {
    const { name, fill } = LOOKS[kind];
    let said = `${name} ${number(sizes[kind])}`;
    for (let left = sizes[kind]; left > 0; ) {
      const { x, y, room } = placeOf(used, top);
      const tokens = Math.min(left, room);
      // A list of todos is fifty tokens: less than a pixel, if it were not given two.
      const width = Math.max(2, round(tokens * SCALE));
      parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${BAR}" fill="${fill}"/>`);
      if (said !== '' && width > said.length * 7) {
        parts.push(label(x + 6, y + 14, said, 'inside'));
        said = '';
      }
      used += tokens;
      left -= tokens;
    }
  }
  const { x, y } = placeOf(used, top);
  parts.push(label(x + 8, y + 15, number(used), 'total'));
  return parts.join('\n');
}

/** Where in a bar so many tokens end, and how many more the row has room for. */
function placeOf(/** @type {number} */ tokens, /** @type {number} */ top) {
  const row = Math.floor(tokens / ROW_TOKENS);
  const inRow = tokens - row * ROW_TOKENS;
  return { x: at(inRow), y: top + row * NEXT_ROW, room: ROW_TOKENS - inRow };
}

const at = (/** @type {number} */ tokens) => round(LEFT + tokens * SCALE);
const round = (/** @type {number} */ value) => Math.round(value * 100) / 100;

function label(
  /** @type {number} */ x,
  /** @type {number} */ y,
  /** @type {string} */ text,
  /** @type {string} */ look,
) {
  return `<text class="${look}" x="${round(x)}" y="${y}">${text}</text>`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const measured = await measureAll();
  mkdirSync(dirname(picturePath), { recursive: true });
  writeFileSync(picturePath, picture(measured));
  writeFileSync(pagePath, withTable(readFileSync(pagePath, 'utf8'), measured));
}
