/** What a sentence means to the model: numbers of features, the same in training and in use. */

import { conceptIndex } from './clauses.js';
import { DIRECTED, ELSEWHERE, FRAMES, MUTED_BY, type Mute } from './frames.js';
import { addGrams } from './grams.js';
import { CONCEPTS, type Concept } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';
import { CODE as SIGNS_OF_CODE } from './signs.js';

const N = CONCEPTS.length;

/** What may be true of a frame that counts. The first one: it is there at all. */
const MARKS = ['', '+model', '+order', '+all', '+dense'] as const;
const M = MARKS.length;
/** What may make it harmless. */
const MUTES: readonly Mute[] = ['elsewhere', 'not', 'asks', 'about', 'told', 'to', 'sparse'];
/** Features of any frame, and how many there are. */
const STEPS = 6;

/** Where the numbers of each kind of features begin. */
const BIAS = 0;
const ASKS = 1;
const QUOTED = 2;
const CODE = 3;
const OTHERS = 4;
/** How many other words: none, one, two, up to five, up to ten, more. */
const OTHER_STEPS = [0, 1, 2, 5, 10];
const COUNT = OTHERS + OTHER_STEPS.length + 1;
const ANY = COUNT + STEPS;
const MUTED = ANY + M;
const HAS = MUTED + MUTES.length;
const OPENS = HAS + N;
const BESIDE = OPENS + N;
const OWN = BESIDE + N;
const HARMLESS = OWN + FRAMES.length * M;
const NEXT_TO = HARMLESS + FRAMES.length;
const FOLLOWED = NEXT_TO + FRAMES.length;
const TOPIC = FOLLOWED + N * N;
const TOPIC_STEPS = 4;
/** From here on, words: see grams.ts. */
export const WORDS = TOPIC + TOPIC_STEPS;

/** How far to look for the topic of a text, in sentences. */
const TOPIC_REACH = 5;

/** A word that qualifies a frame stands this close to one of its ends. */
const QUALIFIES = 3.5;

/** Concepts that say something about the sentences next to theirs. */
const AROUND: readonly Concept[] = ['about', 'said', 'question', 'tag', 'border', 'called', 'conceal'];

const flags = (names: readonly Concept[]): boolean[] => CONCEPTS.map((name) => names.includes(name));

/** The frames as tables of concepts. */
const TABLES = FRAMES.map((frame) => ({
  first: flags(frame.first),
  second: flags(frame.second),
  within: frame.within ?? 9,
  eitherWay: frame.eitherWay ?? true,
  beside: frame.beside && flags(frame.beside),
  mutedBy: new Set(frame.mutedBy ?? MUTED_BY),
}));

/** The frames that two concepts in this order may make. */
const PAIRS = CONCEPTS.map((_, one) =>
  CONCEPTS.map((_, other) =>
    TABLES.flatMap(({ first, second, eitherWay }, i) =>
      (first[one] && second[other]) || (eitherWay && first[other] && second[one]) ? [i] : [],
    ),
  ),
);

/** No two ends of a frame are further apart. */
const LONGEST = Math.max(...TABLES.map(({ within }) => within));

const IS_AROUND = flags(AROUND);
const IS_DIRECTED = flags(DIRECTED);
const IS_ELSEWHERE = flags(ELSEWHERE);
const { about, said, neg, all, question, to, you, must, ai, please, thing, i: writer } = conceptIndex;

/**
 * The features of each sentence, each once; none for a sentence that says too little to be judged, with no frame and
 * hardly a concept. `literal` counts quoted and reported text among words about attacks like everything else.
 */
export function featuresOf(
  sentences: readonly Sentence[],
  literal: boolean,
): (readonly number[] | undefined)[] {
  const frames = sentences.map(({ tokens, others }) =>
    tokens.length < 2 ? NO_FRAMES : framesIn(tokens, others),
  );
  const told = runningTotal(
    sentences.map(({ tokens }) => tokens.filter(({ concept }) => concept === about).length),
  );
  return sentences.map((_, i) =>
    frames[i]!.size === 0 && sentences[i]!.tokens.length < 2
      ? undefined
      : featuresAt(sentences, frames, i, literal, told),
  );
}

type Frames = ReadonlyMap<number, Found>;
const NO_FRAMES: Frames = new Map();

function featuresAt(
  sentences: readonly Sentence[],
  frames: readonly Frames[],
  index: number,
  literal: boolean,
  told: readonly number[],
): number[] {
  const sentence = sentences[index]!;
  const found = new Set<number>([BIAS]);
  const isReported = !literal && sentence.tokens.some(({ quoted }) => quoted) && talksAbout(sentences, index);
  const own = isReported ? sentence.tokens.filter(({ quoted }) => !quoted) : sentence.tokens;
  if (isReported) found.add(QUOTED);
  const has = (wanted: number) => own.some(({ concept }) => concept === wanted);
  const asks = sentence.asks && !has(please);
  if (asks) found.add(ASKS);
  if (SIGNS_OF_CODE.test(sentence.text.slice(sentence.start, sentence.end))) found.add(CODE);
  const more = OTHER_STEPS.findIndex((step) => sentence.others.length <= step);
  found.add(OTHERS + (more === -1 ? OTHER_STEPS.length : more));
  for (const [i, { concept, opens }] of own.entries()) {
    if (i > 0) found.add(FOLLOWED + own[i - 1]!.concept * N + concept);
    found.add(HAS + concept);
    if (opens) found.add(OPENS + concept);
  }
  if (!literal) {
    const near = (told[index + TOPIC_REACH + 1] ?? told.at(-1)!) - (told[index - TOPIC_REACH] ?? 0);
    found.add(TOPIC + Math.min(near, TOPIC_STEPS - 1));
  }
  const around: Mute[] = [];
  if (asks) around.push('asks');
  if (has(about)) around.push('about');
  let count = 0;
  for (const [frame, { marks, mutes }] of isReported ? framesIn(own, sentence.others) : frames[index]!) {
    const { mutedBy } = TABLES[frame]!;
    const reasons = [...mutes, ...around].filter(
      (reason) => mutedBy.has(reason) && !(literal && reason === 'about'),
    );
    for (const reason of reasons) found.add(MUTED + MUTES.indexOf(reason));
    if (reasons.length > 0) {
      found.add(HARMLESS + frame);
      continue;
    }
    count++;
    for (const mark of marks) {
      found.add(OWN + frame * M + mark);
      found.add(ANY + mark);
    }
  }
  found.add(COUNT + Math.min(count, STEPS - 1));
  for (const at of [index - 2, index - 1, index + 1]) {
    const beside = sentences[at];
    if (!beside) continue;
    for (const { concept } of beside.tokens)
      if (IS_AROUND[concept] && !(literal && concept === about)) found.add(BESIDE + concept);
    for (const [frame, { mutes }] of frames[at]!)
      if (!mutes.some((reason) => TABLES[frame]!.mutedBy.has(reason))) found.add(NEXT_TO + frame);
  }
  addGrams(sentence.text, sentence.start, sentence.end, WORDS, found);
  return [...found];
}

/** For each place, the sum of all before it; the whole sum at the end. */
function runningTotal(counts: readonly number[]): number[] {
  const totals = [0];
  for (const count of counts) totals.push(totals.at(-1)! + count);
  return totals;
}

interface Found {
  readonly marks: readonly number[];
  readonly mutes: readonly Mute[];
}

/** The frames of a sentence, each where the least speaks against it. */
function framesIn(tokens: readonly Token[], others: readonly number[]): Frames {
  let found: Map<number, Found> | undefined;
  for (let i = 0; i < tokens.length; i++) {
    const { concept, word } = tokens[i]!;
    const pairs = PAIRS[concept]!;
    for (let j = i + 1; j < tokens.length; j++) {
      const apart = tokens[j]!.word - word;
      if (apart > LONGEST) break;
      for (const frame of pairs[tokens[j]!.concept]!) {
        const { within, beside } = TABLES[frame]!;
        if (apart > within || (beside && !near(tokens, i, j, beside))) continue;
        const mutes = mutesOf(tokens, i, j, others);
        found ??= new Map();
        const known = found.get(frame);
        if (!known || mutes.length < known.mutes.length)
          found.set(frame, { marks: marksOf(tokens, i, j, others), mutes });
      }
    }
  }
  return found ?? NO_FRAMES;
}

/** Does one of these stand between the two, or close to them? */
function near(tokens: readonly Token[], i: number, j: number, wanted: readonly boolean[]): boolean {
  const [from, to] = [tokens[i]!.word - QUALIFIES, tokens[j]!.word + QUALIFIES];
  for (let at = 0; at < tokens.length; at++) {
    if (at === i || at === j) continue;
    const { concept, word } = tokens[at]!;
    if (word >= from && word <= to && wanted[concept]) return true;
  }
  return false;
}

function marksOf(tokens: readonly Token[], i: number, j: number, others: readonly number[]): number[] {
  const marks = [0];
  if (near(tokens, i, j, IS_DIRECTED)) marks.push(1);
  if (tokens[i]!.opens) marks.push(2);
  for (let at = i + 1; at < j; at++)
    if (tokens[at]!.concept === all) {
      marks.push(3);
      break;
    }
  if (otherWords(tokens, i, j, others) === 0) marks.push(4);
  return marks;
}

function mutesOf(tokens: readonly Token[], i: number, j: number, others: readonly number[]): Mute[] {
  const mutes: Mute[] = [];
  const [a, b] = [tokens[i]!, tokens[j]!];
  const before = tokens[i - 1];
  const close = before !== undefined && a.word - before.word <= 1.5;
  if (isElsewhere(tokens, i, j) || (close && before.concept === writer)) mutes.push('elsewhere');
  for (let at = 0; at < i; at++) {
    if (tokens[at]!.concept === question) mutes.push('asks');
    if (tokens[at]!.concept === said) mutes.push('about');
  }
  if (close && before.concept === neg) mutes.push('not');
  if (close && before.concept === to && !isTold(tokens, i)) mutes.push('to');
  if (a.told || (b.told && !near(tokens, i, j, IS_DIRECTED))) mutes.push('told');
  if (otherWords(tokens, i, j, others) > 2) mutes.push('sparse');
  return mutes;
}

/** Something of the writer's or of somebody else stands between the two, or a thing right behind them. */
function isElsewhere(tokens: readonly Token[], i: number, j: number): boolean {
  for (let at = i + 1; at < j; at++) if (IS_ELSEWHERE[tokens[at]!.concept]) return true;
  const next = tokens[j + 1];
  return next !== undefined && next.concept === thing && next.word - tokens[j]!.word <= 1.5;
}

/** `I want you to ignore`: somebody is told to. */
function isTold(tokens: readonly Token[], i: number): boolean {
  for (let at = i - 2; at >= 0 && tokens[i]!.word - tokens[at]!.word < 5; at--)
    if (tokens[at]!.concept === you || tokens[at]!.concept === must || tokens[at]!.concept === ai)
      return true;
  return false;
}

function otherWords(tokens: readonly Token[], i: number, j: number, others: readonly number[]): number {
  return others.filter((word) => word > tokens[i]!.word && word < tokens[j]!.word).length;
}

/** Do words outside of quotation marks say that something is being reported, here or next to it? */
function talksAbout(sentences: readonly Sentence[], index: number): boolean {
  for (const at of [index, index - 1, index - 2, index + 1])
    for (const { concept, quoted } of sentences[at]?.tokens ?? [])
      if (!quoted && (concept === about || (concept === said && at === index))) return true;
  return false;
}

/** The name of a feature, as the table of weights has it. */
export function featureName(id: number): string {
  if (id === BIAS) return '0';
  if (id === ASKS) return '?';
  if (id === QUOTED) return '"';
  if (id === CODE) return '()';
  if (id < COUNT) return `_${id - OTHERS}`;
  if (id < ANY) return `#${id - COUNT}`;
  if (id < MUTED) return `any${MARKS[id - ANY]}`;
  if (id < HAS) return `-${MUTES[id - MUTED]}`;
  if (id < OPENS) return CONCEPTS[id - HAS]!;
  if (id < BESIDE) return `!${CONCEPTS[id - OPENS]}`;
  if (id < OWN) return `~${CONCEPTS[id - BESIDE]}`;
  if (id < HARMLESS) return `/${FRAMES[Math.floor((id - OWN) / M)]!.name}${MARKS[(id - OWN) % M]}`;
  if (id < NEXT_TO) return `-/${FRAMES[id - HARMLESS]!.name}`;
  if (id < FOLLOWED) return `~/${FRAMES[id - NEXT_TO]!.name}`;
  if (id >= WORDS) return `word${id - WORDS}`;
  if (id >= TOPIC) return `about${id - TOPIC}`;
  const pair = id - FOLLOWED;
  return `${CONCEPTS[Math.floor(pair / N)]}>${CONCEPTS[pair % N]}`;
}
