// How fast pii, secrets and contentFilter are together: whole texts, a stream of small deltas, and texts made to be slow.
//   npm run build && node packages/guardrails/eval/speed.mjs

import { readdirSync, readFileSync } from 'node:fs';
import { Agent } from 'allium';
import { contentFilter, pii, secrets } from '../dist/index.js';
import { DEFAULT_TYPES, piiDetector } from '../dist/pii/detect.js';
import { injectionDetector } from '../dist/prompt-injection/detect.js';
import { linearPattern, wordPattern } from '../dist/scan/patterns.js';
import { inPlainText } from '../dist/scan/plain.js';
import { secretDetector } from '../dist/secrets/detect.js';

const keywords = ['project falcon', 'internal only', 'do not share', 'confidential'];
const search = wordPattern(keywords);
function wordsIn(text) {
  const found = [];
  search(text, (start, end) => found.push({ start, end, kind: 'keyword' }));
  return found;
}
const detectors = {
  pii: piiDetector({ types: DEFAULT_TYPES }),
  secrets: secretDetector({ entropy: true }),
  'content filter': inPlainText(wordsIn),
};
const all = (text) => {
  for (const detect of Object.values(detectors)) detect(text, 0);
};

/** Processor time in microseconds, the least of five. */
function cpu(work) {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const started = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(started);
    best = Math.min(best, user + system);
  }
  return best;
}

/** Processor time in microseconds, of what takes long enough to be measured once. */
function cpuOnce(work) {
  const started = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(started);
  return user + system;
}

const guide = new URL('../../../docs/guide/', import.meta.url);
const pages = readdirSync(guide).filter((name) => name.endsWith('.md'));
const prose = pages
  .map((name) => readFileSync(new URL(name, guide), 'utf8'))
  .join('\n')
  .repeat(10);
for (const [name, detect] of Object.entries(detectors))
  console.log(
    `${name.padEnd(16)} ${(prose.length / cpu(() => detect(prose, 0))).toFixed(0)} MB/s on the guide`,
  );
console.log(
  `${'all three'.padEnd(16)} ${(prose.length / cpu(() => all(prose))).toFixed(0)} MB/s on the guide (goal: 20)`,
);

/** A model that says a text in pieces. */
const model = (text) => ({
  provider: 'bench',
  id: 'pieces',
  async *stream() {
    for (let at = 0; at < text.length; at += 4) yield { type: 'text', text: text.slice(at, at + 4) };
    yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
  },
});

async function streamed(middleware) {
  let best = Number.POSITIVE_INFINITY;
  const text = prose.slice(0, 400_000);
  for (let round = 0; round < 5; round++) {
    const started = process.cpuUsage();
    const stream = new Agent({ model: model(text), middleware }).stream('Go');
    for await (const _ of stream);
    const { user, system } = process.cpuUsage(started);
    best = Math.min(best, (user + system) / (text.length / 4));
  }
  return best;
}
const bare = await streamed([]);
const guarded = await streamed([pii(), secrets(), contentFilter({ keywords })]);
console.log(
  `a delta of 4 characters: ${bare.toFixed(2)} µs bare, ${guarded.toFixed(2)} µs with all three: ${(guarded - bare).toFixed(2)} µs more (goal: 2)`,
);

/** Made to be slow: what begins like something again and again. */
const SLOW = {
  'one line of a': 'a',
  'digits in groups': '4111 1111 1111 1112 ',
  at: 'a@b.',
  headers: '-----BEGIN PRIVATE KEY-----',
  'plus signs': '+1 ',
  addresses: '1.2.3.4',
  'single digits': '0 ',
  colons: 'a:',
  credentials: '://a:b',
  quotes: '"@',
  'hexadecimal pairs': 'aa-',
  parentheses: '(0',
  'percent signs': '%40',
  'twice encoded': '%2540',
  entities: '&#64;',
  'zero-width': 'a\u200b',
  'full-width': '４@',
};
for (const [name, piece] of Object.entries(SLOW)) {
  const [short, long] = [1_000_000, 10_000_000].map((length) => {
    const text = piece.repeat(length / piece.length);
    const started = process.cpuUsage();
    all(text);
    const { user, system } = process.cpuUsage(started);
    return (user + system) / 1e6;
  });
  console.log(`10 MB of ${name}: ${long.toFixed(2)} s, ${(long / short).toFixed(1)} × the time of 1 MB`);
}
const injection = injectionDetector({ threshold: 1, strict: false });
console.log(`prompt injection: ${(prose.length / cpu(() => injection(prose))).toFixed(1)} MB/s on the guide`);
for (const piece of [
  'ignore ',
  'ignore all the ',
  'a b ',
  'QUJD',
  '%41',
  'you are ',
  '"',
  'as an ',
  'send to ',
]) {
  const [short, long] = [50_000, 500_000].map((length) =>
    cpu(() => injection(piece.repeat(length / piece.length))),
  );
  console.log(
    `500 kB of ${JSON.stringify(piece)} for prompt injection: ${(long / short).toFixed(1)} × the time of 50 kB`,
  );
}
for (const line of ['Please look at the order 4711 of the customer again. ', 'A1b2C3d4E5f6G7h8']) {
  const [tenth, whole] = [1_000_000, 10_000_000].map((length) =>
    cpuOnce(() => injection(line.repeat(length / line.length))),
  );
  console.log(
    `10 MB of ${JSON.stringify(line)} in one line for prompt injection: ${(whole / 1e6).toFixed(2)} s, ${(whole / tenth).toFixed(1)} × the time of 1 MB`,
  );
}
const evil = linearPattern('pattern', /^(a+)+$/);
const [short, long] = [100_000, 1_000_000].map(
  (length) => cpu(() => evil(`${'a'.repeat(length)}!`, () => {})) / 1e6,
);
console.log(`/^(a+)+$/ on 1 MB: ${long.toFixed(2)} s, ${(long / short).toFixed(1)} × the time of 100 kB`);
