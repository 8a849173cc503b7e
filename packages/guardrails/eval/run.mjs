// Measures the detectors on generated, labelled texts, and writes results.json and the table of the guide.
//   npm run eval:guardrails                          all corpora, as the guide shows them
//   npm run eval:guardrails -- --set tune            the texts that the detectors were tuned with
//   npm run eval:guardrails -- --compare             the same texts of the report with what npm offers instead
//   npm run eval:guardrails -- --mistakes 10         prints what went wrong
//   npm run eval:guardrails -- --corpus mine.jsonl   your texts: a line each, { "text", "spans": [{ "start", "end", "kind" }] },
//                                                    or { "text", "injection": true }

import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DEFAULT_TYPES, piiDetector } from '../dist/pii/detect.js';
import { injectionDetector } from '../dist/prompt-injection/detect.js';
import { secretDetector } from '../dist/secrets/detect.js';
import { compare } from './compare/run.mjs';
import { disguisedCorpus } from './disguised-corpus.mjs';
import { REPORT_SET } from './injection/report-set.mjs';
import { TUNING_SET } from './injection/tuning.mjs';
import { injectionCorpus } from './injection-corpus.mjs';
import { measure, speed } from './measure.mjs';
import { CHECKED, PII_CORPUS_TYPES, piiCorpus } from './pii-corpus.mjs';
import { proseCorpus } from './prose.mjs';
import { secretsCorpus, VENDOR_COUNT } from './secrets-corpus.mjs';

/** Detectors are tuned with the first and reported with the second. */
const SEEDS = { tune: 11, report: 271_828 };
/** The texts about injections were written anew, and are put together with another seed than the rest of the report. */
const INJECTION_SEEDS = { tune: 11, report: 662_607 };

const { values } = parseArgs({
  options: {
    set: { type: 'string', default: 'report' },
    mistakes: { type: 'string', default: '0' },
    corpus: { type: 'string' },
    compare: { type: 'boolean', default: false },
    'no-write': { type: 'boolean', default: false },
  },
});
const set = /** @type {'tune' | 'report'} */ (values.set);
if (!Object.hasOwn(SEEDS, set)) throw new Error(`Expected --set to be tune or report, got ${set}.`);

const pii = piiDetector({ types: DEFAULT_TYPES });
const secrets = secretDetector({ entropy: true });
const injection = injectionDetector({ threshold: 1, strict: false });

if (values.corpus) measureOwn(values.corpus);
else if (values.compare) await compare(SEEDS.report, INJECTION_SEEDS.report, { write: !values['no-write'] });
else measureAll();

function measureAll() {
  const seed = SEEDS[set];
  /** @type {Record<string, any>[]} */
  const rows = [];
  for (const type of PII_CORPUS_TYPES) {
    const corpus = piiCorpus(type, set, seed);
    const only = piiDetector({ types: [type] });
    const goal = CHECKED.has(type) ? 0.98 : 0.95;
    rows.push(
      row(
        `pii: ${type}`,
        corpus,
        (text) => pii(text, 0).filter(({ kind }) => kind === type),
        goal,
        (text) => only(text, 0),
      ),
    );
  }
  const disguised = disguisedCorpus(set, seed);
  const typeOf = new Map(disguised.map(({ text, type }) => [text, type]));
  rows.push(
    row(
      'pii: disguised',
      disguised,
      (text) => pii(text, 0).filter(({ kind }) => kind === typeOf.get(text)),
      0.95,
    ),
  );
  rows.push(
    row(`secrets (${VENDOR_COUNT} formats)`, secretsCorpus(set, seed), (text) => secrets(text, 0), 0.95),
  );
  rows.push(injectionRow(injectionCorpus(set === 'tune' ? TUNING_SET : REPORT_SET, INJECTION_SEEDS[set])));
  print(rows);
  const prose = proseCorpus(set);
  const alarms = prose.filter((text) => injection(text).length > 0).length;
  console.log(
    `prompt injection on ${prose.length} paragraphs of the READMEs of installed packages: ${alarms} alarms (${((alarms / prose.length) * 100).toFixed(2)} %)`,
  );
  const unmet = rows.filter(({ reached }) => !reached);
  console.log(
    unmet.length === 0
      ? 'All goals are reached.'
      : `NOT REACHED: ${unmet.map(({ name, goal }) => `${name} (${goal})`).join('; ')}`,
  );
  if (set !== 'report' || values['no-write']) return;
  const results = rows.map(({ mistakes, ...rest }) => rest);
  writeFileSync(
    new URL('results.json', import.meta.url),
    `${JSON.stringify({ date: new Date().toISOString().slice(0, 10), seed, injectionSeed: INJECTION_SEEDS.report, results }, null, 2)}\n`,
  );
  const page = new URL('../../../docs/guide/guardrails.md', import.meta.url);
  const text = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    text.replace(
      /(<!-- eval -->\n)[\s\S]*?(<!-- \/eval -->)/,
      (_, open, close) => `${open}${table(rows)}\n${close}`,
    ),
  );
}

function row(name, corpus, detect, goal, timed = detect) {
  const measured = measure(corpus, detect);
  return {
    name,
    ...rounded(measured),
    mbPerSecond: Math.round(speed(corpus, timed)),
    goal: `F1 ≥ ${goal}`,
    reached: measured.f1 >= goal,
    mistakes: measured.mistakes,
  };
}

function injectionRow(corpus) {
  let [found, missed, wrong, right] = [0, 0, 0, 0];
  /** @type {{ missed?: string, wrong?: string }[]} */
  const mistakes = [];
  /** @type {Record<string, string>} */
  const byCategory = {};
  /** @type {Record<string, [number, number]>} */
  const counts = {};
  for (const { text, injection: is, category } of corpus) {
    const hit = injection(text).length > 0;
    if (is && hit) found++;
    else if (is) missed++;
    else if (hit) wrong++;
    else right++;
    if (is !== hit) mistakes.push(is ? { missed: text } : { wrong: text });
    counts[category] ??= [0, 0];
    const count = counts[category];
    if (hit) count[0]++;
    count[1]++;
  }
  for (const [category, [hits, all]] of Object.entries(counts)) byCategory[category] = `${hits}/${all}`;
  const recall = found / (found + missed);
  const precision = found / (found + wrong);
  const falseAlarms = wrong / (wrong + right);
  const f1 = (2 * precision * recall) / (precision + recall);
  return {
    name: 'prompt injection',
    ...rounded({ texts: corpus.length, labels: found + missed, found, missed, wrong, precision, recall, f1 }),
    falseAlarms: round(falseAlarms),
    byCategory,
    mbPerSecond: Math.round(speed(corpus, injection)),
    goal: 'recall ≥ 0.8 at ≤ 2 % false alarms',
    reached: recall >= 0.8 && falseAlarms <= 0.02,
    mistakes,
  };
}

function rounded({ texts, labels, found, missed, wrong, precision, recall, f1 }) {
  return {
    texts,
    labels,
    found,
    missed,
    wrong,
    precision: round(precision),
    recall: round(recall),
    f1: round(f1),
  };
}

function round(value) {
  return Math.round(value * 10_000) / 10_000;
}

function print(rows) {
  for (const {
    name,
    texts,
    precision,
    recall,
    f1,
    falseAlarms,
    mbPerSecond,
    goal,
    reached,
    mistakes,
    byCategory,
  } of rows) {
    const alarms = falseAlarms === undefined ? '' : `  false alarms ${(falseAlarms * 100).toFixed(1)} %`;
    console.log(
      `${name.padEnd(24)} ${String(texts).padStart(5)} texts  precision ${precision.toFixed(4)}  recall ${recall.toFixed(4)}  F1 ${f1.toFixed(4)}${alarms}  ${mbPerSecond} MB/s  ${goal}: ${reached ? 'reached' : 'NOT REACHED'}`,
    );
    if (byCategory)
      console.log(
        `  ${Object.entries(byCategory)
          .map(([category, hits]) => `${category} ${hits}`)
          .join(', ')}`,
      );
    for (const { missed, wrong } of mistakes.slice(0, Number(values.mistakes)))
      console.log(
        `  ${missed === undefined ? `wrong:  ${JSON.stringify(wrong)}` : `missed: ${JSON.stringify(missed)}`}`,
      );
  }
}

/** As Markdown. Speed is left out: it is a property of the machine. */
function table(rows) {
  const lines = rows.map(
    ({ name, texts, precision, recall, f1, falseAlarms, mbPerSecond, goal, reached }) =>
      `| ${name} | ${texts} | ${precision.toFixed(3)} | ${recall.toFixed(3)} | ${f1.toFixed(3)} | ${falseAlarms === undefined ? '' : `${(falseAlarms * 100).toFixed(1)} %`} | ${mbPerSecond} | ${goal}: ${reached ? 'reached' : '**not reached**'} |`,
  );
  return [
    '| detector | texts | precision | recall | F1 | false alarms | MB/s | goal |',
    '|---|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

/** A file of the user's: each kind by itself, whatever detector finds it. */
function measureOwn(path) {
  const samples = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, i) => {
      try {
        return JSON.parse(line);
      } catch (cause) {
        throw new Error(`${path}:${i + 1} is not JSON.`, { cause });
      }
    });
  const labelled = samples.filter(({ spans }) => Array.isArray(spans));
  const kinds = new Set(labelled.flatMap(({ spans }) => spans.map(({ kind }) => kind)));
  const rows = [...kinds].map((kind) => {
    const detect = DEFAULT_TYPES.includes(kind)
      ? (text) => pii(text, 0).filter((one) => one.kind === kind)
      : (text) => secrets(text, 0);
    const own = labelled.map(({ text, spans }) => ({
      text,
      spans: spans.filter((span) => span.kind === kind),
    }));
    return row(String(kind), own, detect, 0.95);
  });
  const judged = samples
    .filter(({ injection: is }) => typeof is === 'boolean')
    .map((one) => ({ category: 'own', ...one }));
  if (judged.length > 0) rows.push(injectionRow(judged));
  if (rows.length === 0) throw new Error(`${path} has no line with "spans" or "injection".`);
  print(rows);
}
