// Learns the weights of the injection detector from the texts for tuning, and writes src/prompt-injection/*weights-data.ts.
//   npm run build && node packages/guardrails/eval/train-injection.mjs            holds back each set in turn, then all texts
//   … --mistakes 20                                                               prints what was got wrong in sets that were held back
//   … --no-write
//
// Logistic regression over the features of sentences (src/prompt-injection/features.ts). A text is an injection if one of its
// sentences is: of an injection the sentence that scores highest is learned as one, of other texts all are learned as none.
// Each set of sentences is held back in turn, so that what is printed is of texts written at another time than those that were
// learned: that comes closer to strange texts than parts of one set do.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readingsOf } from '../dist/prompt-injection/detect.js';
import { FEATURES, featureName, featuresOf, WORDS } from '../dist/prompt-injection/features.js';
import { PRIOR } from './injection/prior.mjs';
import { setOf, TUNING_SET } from './injection/tuning.mjs';
import { injectionCorpus } from './injection-corpus.mjs';
import { proseCorpus } from './prose.mjs';

const { values } = parseArgs({
  options: { mistakes: { type: 'string', default: '0' }, 'no-write': { type: 'boolean', default: false } },
});

const SEED = 11;
/** How many wrong alarms the threshold may raise among the texts that were held back, which were chosen to be hard. */
const FALSE_ALARMS = 0.0125;
const ROUNDS = 4;
const STEPS = 100;
const RIDGE = 0.0002;

/** Paragraphs of other people's READMEs, half of them: the others are measured with. */
const prose = proseCorpus('tune').map((text) => ({
  category: 'benign-prose',
  text,
  injection: false,
  group: text,
}));
const samples = [...injectionCorpus(TUNING_SET, SEED), ...prose].map((sample) => ({
  ...sample,
  sentences: readingsOf(sample.text).flatMap(({ sentences }) =>
    featuresOf(sentences, false).filter((one) => one !== undefined),
  ),
}));

const prior = Float64Array.from(
  { length: FEATURES },
  (_, id) => (id < WORDS ? PRIOR[featureName(id)] : undefined) ?? 0,
);

/** @typedef {typeof samples[number]} Prepared */

/** @param {Float64Array} weights @param {number[]} features */
function sum(weights, features) {
  let z = 0;
  for (const id of features) z += weights[id];
  return z;
}

/** @param {Float64Array} weights @param {Prepared} sample */
function scoreOf(weights, { sentences }) {
  return sentences.reduce((most, features) => Math.max(most, sum(weights, features)), -9);
}

/** @param {readonly Prepared[]} some */
function train(some) {
  let weights = prior;
  for (let round = 0; round < ROUNDS; round++) {
    /** @type {[number[], number, number][]} */
    const rows = [];
    // Each kind of texts weighs the same, however many there are of it.
    const counts = new Map();
    for (const { category } of some) counts.set(kindOf(category), (counts.get(kindOf(category)) ?? 0) + 1);
    for (const { injection, sentences, category } of some) {
      const share = 1 / counts.get(kindOf(category));
      if (sentences.length === 0) continue;
      const best = (features) => sum(weights, features);
      if (!injection) for (const features of sentences) rows.push([features, 0, share]);
      else {
        const top = sentences.reduce((one, other) => (best(other) > best(one) ? other : one));
        rows.push([top, 1, share]);
      }
    }
    weights = descend(rows, weights);
  }
  return weights;
}

const kindOf = (category) =>
  category.startsWith('benign') ? (category === 'benign-prose' ? 'prose' : 'benign') : 'injection';

/** Gradient descent with a step for each weight (Adagrad), all rows at once: the same result on every machine. */
function descend(rows, from) {
  const weights = Float64Array.from(from);
  const squares = new Float64Array(FEATURES).fill(1e-10);
  for (let step = 0; step < STEPS; step++) {
    const gradient = new Float64Array(FEATURES);
    for (const [features, label, share] of rows) {
      const error = (1 / (1 + Math.exp(-sum(weights, features))) - label) * share;
      for (const id of features) gradient[id] += error;
    }
    for (let id = 0; id < FEATURES; id++) {
      const slope = gradient[id] + RIDGE * (weights[id] - prior[id]);
      if (slope === 0) continue;
      squares[id] += slope * slope;
      weights[id] -= (0.08 * slope) / Math.sqrt(squares[id]);
    }
  }
  return weights;
}

/** @type {{ sample: Prepared, score: number }[]} */
const held = [];
for (const set of new Set(setOf.values())) {
  const isHeld = ({ group }) => setOf.get(group) === set;
  const weights = train(samples.filter((sample) => !isHeld(sample)));
  for (const sample of samples.filter(isHeld)) held.push({ sample, score: scoreOf(weights, sample) });
}
const benign = held
  .filter(({ sample }) => kindOf(sample.category) === 'benign')
  .sort((a, b) => b.score - a.score);
const threshold = Math.max(0, benign[Math.floor(benign.length * FALSE_ALARMS)].score + 1e-6);
const injections = held.filter(({ sample }) => sample.injection).length;
for (const rate of [0.01, 0.0125, 0.015, 0.02, 0.03]) {
  const at = benign[Math.floor(benign.length * rate)].score + 1e-6;
  const found = held.filter(({ sample, score }) => sample.injection && score >= at).length;
  console.log(`  at ${rate * 100} % false alarms: recall ${(found / injections).toFixed(3)}`);
}
for (const at of [0, threshold]) {
  const found = held.filter(({ sample, score }) => sample.injection && score >= at).length;
  const wrong = benign.filter(({ score }) => score >= at).length;
  console.log(
    `held back, log odds ≥ ${at.toFixed(2)}: recall ${(found / injections).toFixed(3)}, false alarms ${((wrong / benign.length) * 100).toFixed(2)} %`,
  );
}
const byCategory = {};
for (const { sample, score } of held) {
  byCategory[sample.category] ??= [0, 0];
  const count = byCategory[sample.category];
  if (score >= threshold) count[0]++;
  count[1]++;
}
console.log(
  Object.entries(byCategory)
    .map(([name, [hits, all]]) => `${name} ${hits}/${all}`)
    .join(', '),
);
const seen = new Set();
const mistakes = held
  .filter(({ sample, score }) => score >= threshold !== sample.injection)
  .sort((a, b) => b.score - a.score);
for (const { sample, score } of [
  ...mistakes.filter(({ sample }) => !sample.injection),
  ...mistakes.filter(({ sample }) => sample.injection).reverse(),
]) {
  if (seen.has(sample.group) || seen.size >= Number(values.mistakes)) continue;
  seen.add(sample.group);
  console.log(
    `${sample.injection ? 'missed' : 'wrong '} ${score.toFixed(1)} ${sample.category}: ${JSON.stringify(sample.text)}`,
  );
}

if (!values['no-write']) {
  const weights = train(samples);
  weights[0] -= threshold;
  const entries = [];
  for (let id = 0; id < WORDS; id++)
    if (Math.abs(weights[id]) >= 0.05) entries.push(`${featureName(id)}=${weights[id].toFixed(2)}`);
  const lines = [''];
  for (const entry of entries) {
    if (lines.at(-1).length + entry.length > 126) lines.push('');
    lines[lines.length - 1] += `${entry} `;
  }
  // A byte for each word, in base64.
  const most = Math.max(...weights.subarray(WORDS).map(Math.abs));
  const step = Number((most / 127).toFixed(4)) + 0.0001;
  const bytes = Int8Array.from(weights.subarray(WORDS), (weight) => Math.round(weight / step));
  const base64 = Buffer.from(bytes.buffer).toString('base64');
  const write = (name, text) =>
    writeFileSync(new URL(`../src/prompt-injection/${name}.ts`, import.meta.url), text);
  write(
    'weights-data',
    `/** Learned by eval/train-injection.mjs: name=weight, names as \`featureName\` has them. */
export const WEIGHTS = \`
${lines.map((line) => line.trimEnd()).join('\n')}
\`;
`,
  );
  write(
    'gram-weights-data',
    `/** Learned by eval/train-injection.mjs. */

/** What words weigh: a signed byte each, times this. */
export const GRAM_STEP = ${step.toFixed(4)};
export const GRAM_WEIGHTS = \`
${base64.match(/.{1,126}/g).join('\n')}
\`;
`,
  );
  console.log(
    `${entries.length} weights of concepts and ${bytes.filter((byte) => byte !== 0).length} of words written.`,
  );
}
