// Measures the peers on the corpora of the report, in one run with the detectors of this package, and writes results.json and
// the tables of the guide.
//   npm run eval:guardrails -- --compare

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { REPORT_SET } from '../injection/report-set.mjs';
import { injectionCorpus } from '../injection-corpus.mjs';
import { PII_CORPUS_TYPES, piiCorpus } from '../pii-corpus.mjs';
import { secretsCorpus } from '../secrets-corpus.mjs';
import { LEFT_OUT, PEERS } from './peers.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Long enough that the call itself costs little, and no longer than what people and tools send. */
const MESSAGE_CHARACTERS = 2000;

/**
 * @param {number} seed
 * @param {number} injectionSeed
 * @param {{ write: boolean }} options
 */
export async function compare(seed, injectionSeed, { write }) {
  install();
  const corpora = corporaOf(seed, injectionSeed);
  const results = [];
  for (const peer of PEERS) {
    const result = await measured(peer, corpora);
    results.push(result);
    print(result);
  }
  for (const [name, reason] of LEFT_OUT) console.log(`left out: ${name}: ${reason}`);
  if (!write) return;
  const leftOut = LEFT_OUT.map(([name, reason]) => ({ name, reason }));
  const date = new Date().toISOString().slice(0, 10);
  const whole = {
    date,
    seed,
    injectionSeed,
    node: process.versions.node,
    scoring: 'presence of a type in a text',
    results,
    leftOut,
  };
  writeFileSync(`${HERE}results.json`, `${JSON.stringify(whole, null, 2)}\n`);
  const page = new URL('../../../../docs/guide/guardrails.md', import.meta.url);
  const text = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    text.replace(
      /(<!-- compare -->\n)[\s\S]*?(<!-- \/compare -->)/,
      (_, open, close) => `${open}${tables(results, date)}\n${close}`,
    ),
  );
}

/** A failure leaves rows that say what is missing. */
function install() {
  const { dependencies } = readJson(`${HERE}package.json`);
  if (Object.entries(dependencies).every(([name, version]) => versionOf(name) === version)) return;
  console.log('Installing what is compared (packages/guardrails/eval/compare/package.json) …');
  spawnSync('npm', ['ci'], { cwd: HERE, stdio: 'inherit' });
}

/** By type: texts, and whether each holds one. */
function corporaOf(seed, injectionSeed) {
  const labelled = (corpus) => corpus.map(({ text, spans }) => ({ text, is: spans.length > 0 }));
  return {
    ...Object.fromEntries(PII_CORPUS_TYPES.map((type) => [type, labelled(piiCorpus(type, 'report', seed))])),
    secrets: labelled(secretsCorpus('report', seed)),
    injection: injectionCorpus(REPORT_SET, injectionSeed).map(({ text, injection }) => ({
      text,
      is: injection,
    })),
  };
}

async function measured({ name, package: id, setup, claims, load }, corpora) {
  const version = id && versionOf(id);
  const made = { name, version: version ?? null, setup };
  try {
    const find = await load.call({ claims });
    /** @type {Record<string, ReturnType<typeof scores>>} */
    const types = {};
    for (const [type, own] of Object.entries(claims)) {
      const counts = { found: 0, missed: 0, wrong: 0, right: 0 };
      for (const { text, is } of corpora[type]) {
        const hit = [...(await find(text))].some((kind) => own.includes(kind));
        counts[is ? (hit ? 'found' : 'missed') : hit ? 'wrong' : 'right']++;
      }
      types[type] = scores(counts);
    }
    const texts = Object.keys(claims).flatMap((type) => corpora[type].filter(({ is }) => !is));
    return { ...made, mbPerSecond: round(await speed(find, texts), 1), types };
  } catch (error) {
    return { ...made, unavailable: error instanceof Error ? error.message.split('\n')[0] : String(error) };
  }
}

function scores({ found, missed, wrong, right }) {
  const precision = found + wrong === 0 ? 1 : found / (found + wrong);
  const recall = found / (found + missed);
  const f1 = precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
  return {
    texts: found + missed + wrong + right,
    found,
    missed,
    wrong,
    precision: round(precision, 4),
    recall: round(recall, 4),
    f1: round(f1, 4),
    falseAlarms: round(wrong / (wrong + right), 4),
  };
}

/**
 * Megabytes per second of processor time on messages of texts that hold nothing, the best of three: a peer that stops at the
 * first thing it finds has no advantage.
 */
async function speed(find, texts) {
  /** @type {string[]} */
  const messages = [];
  let message = '';
  for (const { text } of texts) {
    message += `${text}\n`;
    if (message.length < MESSAGE_CHARACTERS) continue;
    messages.push(message);
    message = '';
  }
  const some = messages.slice(0, 200);
  const length = some.reduce((sum, one) => sum + one.length, 0);
  let best = 0;
  for (let round = 0; round < 3; round++) {
    const started = process.cpuUsage();
    for (const one of some) await find(one);
    const { user, system } = process.cpuUsage(started);
    best = Math.max(best, length / (user + system));
  }
  return best;
}

function print({ name, version, unavailable, mbPerSecond, types }) {
  console.log(
    `${name}${version ? ` ${version}` : ''}: ${unavailable ? `NOT MEASURED: ${unavailable}` : `${mbPerSecond} MB/s`}`,
  );
  for (const [type, { precision, recall, f1, falseAlarms }] of Object.entries(types ?? {}))
    console.log(
      `  ${type.padEnd(12)} precision ${precision.toFixed(4)}  recall ${recall.toFixed(4)}  F1 ${f1.toFixed(4)}  false alarms ${(falseAlarms * 100).toFixed(1)} %`,
    );
}

function tables(results, date) {
  const titled = ({ name, version }) => (version ? `${name} ${version}` : name);
  const claiming = (types) =>
    results.filter((one) => one.types && types.some((type) => Object.hasOwn(one.types, type)));
  const cell = (score) =>
    score ? `${score.f1.toFixed(2)}<br>${score.precision.toFixed(2)} / ${score.recall.toFixed(2)}` : '';
  const personal = claiming(PII_CORPUS_TYPES).map(
    (one) =>
      `| ${titled(one)} | ${PII_CORPUS_TYPES.map((type) => cell(one.types[type])).join(' | ')} | ${one.mbPerSecond} |`,
  );
  const others = ['secrets', 'injection'].flatMap((type) =>
    claiming([type]).map((one) => {
      const { precision, recall, f1, falseAlarms } = one.types[type];
      return `| ${type} | ${titled(one)} | ${precision.toFixed(3)} | ${recall.toFixed(3)} | ${f1.toFixed(3)} | ${(falseAlarms * 100).toFixed(1)} % | ${one.mbPerSecond} |`;
    }),
  );
  const missing = [
    ...results.filter((one) => one.unavailable).map((one) => [titled(one), one.unavailable]),
    ...LEFT_OUT,
  ];
  return [
    `All rows are of one run, on ${date}, with Node ${process.versions.node}.`,
    '',
    'Personal data: F1, and below it precision / recall. An empty cell: it does not claim to find this.',
    '',
    `| | ${PII_CORPUS_TYPES.join(' | ')} | MB/s |`,
    `|---${'|---'.repeat(PII_CORPUS_TYPES.length + 1)}|`,
    ...personal,
    '',
    'Secrets and injections:',
    '',
    '| | | precision | recall | F1 | false alarms | MB/s |',
    '|---|---|---|---|---|---|---|',
    ...others,
    '',
    'Not measured:',
    '',
    ...missing.map(([name, reason]) => `- ${name}: ${reason}.`),
  ].join('\n');
}

function round(value, digits) {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

function versionOf(name) {
  const path = `${HERE}node_modules/${name}/package.json`;
  return existsSync(path) ? readJson(path).version : undefined;
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
