/** Finds texts that give orders to the model that reads them. */
import type { Finding } from '../scan/finding.js';
import { conceptIndex } from './clauses.js';
import { disguised, hiddenTexts } from './decode.js';
import { featuresOf } from './features.js';
import { CONCEPTS, type Concept } from './lexicon.js';
import { normalise } from './normalise.js';
import { Reader, type Sentence } from './sentences.js';
import { weightOf } from './weights.js';

export interface InjectionDetectorOptions {
  /** The score from which a text counts as an injection. */
  readonly threshold: number;
  /** Also count orders in quotation marks among words about attacks. */
  readonly strict: boolean;
}

/** A passage of the original, and how sure the detector is: 1 is the usual threshold. */
export interface Injection extends Finding {
  readonly score: number;
}

/** A way to read a text: as it is, reversed, or decoded. */
interface ReadText {
  readonly sentences: readonly Sentence[];
  /** It was hidden in an encoding. */
  readonly hidden: boolean;
  /** Where `[start, end)` of what was read is in the original. */
  place(start: number, end: number): readonly [number, number];
}

/** A sentence this close to the threshold belongs to the passage beside it. */
const KIN = 0.5;

let reader: Reader | undefined;

/** Everything that a text says, in every way to read it. */
function readingsOf(text: string): ReadText[] {
  reader ??= new Reader();
  const plain = normalise(text);
  const place = (start: number, end: number): readonly [number, number] => [
    plain.start(start),
    plain.end(end - 1),
  ];
  const readings: ReadText[] = [
    { sentences: reader.read(plain.text, plain.runTogether), hidden: false, place },
  ];
  const other = disguised(plain.text);
  if (other) {
    const { length } = plain.text;
    readings.push({
      sentences: reader.read(other.text, false),
      hidden: true,
      place: other.reversed ? (start, end) => place(length - end, length - start) : place,
    });
  }
  for (const { text: said, start, end } of hiddenTexts(text)) {
    const inside = normalise(said);
    readings.push({
      sentences: reader.read(inside.text, inside.runTogether),
      hidden: true,
      place: () => [start, end],
    });
  }
  return readings;
}

/** The sum of its weights: above 0 the model takes a sentence for an injection. */
function logOdds(features: readonly number[]): number {
  let sum = 0;
  for (const id of features) sum += weightOf(id);
  return sum;
}

/** 1 if the model is undecided, so that `threshold` is easy to set; one more or less for each factor of e⁴. */
const scoreOf = (features: readonly number[]): number => 1 + logOdds(features) / 4;

export function injectionDetector({
  threshold,
  strict,
}: InjectionDetectorOptions): (text: string) => Injection[] {
  return (text) => {
    const readings = readingsOf(text).map((reading) => passages(reading, text, threshold, strict));
    if (readings.length === 1) return readings[0]!;
    const found: Injection[] = [];
    for (const one of readings.flat().sort((a, b) => a.start - b.start)) {
      // Read in two ways, it is still one.
      const last = found.at(-1);
      if (last && one.start < last.end) found[found.length - 1] = widest(last, one);
      else found.push(one);
    }
    return found;
  };
}

function widest(one: Injection, other: Injection): Injection {
  return {
    ...(other.score > one.score ? other : one),
    start: Math.min(one.start, other.start),
    end: Math.max(one.end, other.end),
  };
}

/** Sentences that give orders, and those beside them that seem to belong to them. */
function passages(
  { sentences, hidden, place }: ReadText,
  text: string,
  threshold: number,
  strict: boolean,
): Injection[] {
  const scores = featuresOf(sentences, strict).map((features) => (features ? scoreOf(features) : 0));
  for (const [i, score] of scores.entries())
    if (score < threshold) scores[i] = Math.max(score, leadScore(sentences, i, strict));
  const found: Injection[] = [];
  for (let i = 0; i < sentences.length; i++) {
    if (scores[i]! < threshold) continue;
    let [first, last] = [i, i];
    while (first > 0 && scores[first - 1]! >= threshold * KIN) first--;
    while (last + 1 < sentences.length && scores[last + 1]! >= threshold * KIN) last++;
    const [start, end] = place(sentences[first]!.start, sentences[last]!.end);
    const kind = kindOf(sentences[i]!);
    found.push({
      ...trimmed(text, start, end),
      kind: hidden ? `hidden-${kind}` : kind,
      score: Math.max(...scores.slice(first, last + 1)),
    });
    i = last;
  }
  return found;
}

const { ignore, outrank } = conceptIndex;
/** The words that join an order to the next one. */
const JOINT = /,? (?:and|then) (?=\p{L})/u;
const QUOTE = /["'`]/;

/**
 * The score of what a sentence says before its first "and", if that sets aside instructions: it is an injection by
 * itself, so harmless words behind it must not make it less of one.
 */
function leadScore(sentences: readonly Sentence[], index: number, strict: boolean): number {
  const { text, start, end, tokens } = sentences[index]!;
  if (!tokens.some(({ concept }) => concept === ignore || concept === outrank)) return 0;
  // Words around a quotation may say why it is quoted.
  const quoted = tokens.filter((token) => token.quoted).length;
  if (quoted > 0 && quoted < tokens.length) return 0;
  const said = text.slice(start, end);
  const joint = JOINT.exec(said);
  if (!joint) return 0;
  const mark = quoted > 0 ? (QUOTE.exec(said)?.[0] ?? '') : '';
  const lead = reader!.read(said.slice(0, joint.index) + mark, false);
  const before = sentences.slice(Math.max(0, index - 2), index);
  const read = featuresOf([...before, ...lead, ...sentences.slice(index + 1, index + 3)], strict);
  const scores = read.slice(before.length, before.length + lead.length);
  return Math.max(0, ...scores.map((features) => (features ? scoreOf(features) : 0)));
}

/** Without spaces and signs at its edges, as these belong to what is around it. */
function trimmed(text: string, start: number, end: number): { start: number; end: number } {
  const edge = /[\s<>\-,;:.!?。！？*/]/;
  while (start < end && edge.test(text[start]!)) start++;
  while (end > start && edge.test(text[end - 1]!)) end--;
  return { start, end };
}

/** The main goal of an injection, the most serious first. */
const KINDS: readonly (readonly [string, readonly Concept[]])[] = [
  ['override', ['ignore', 'outrank']],
  ['exfiltration', ['send']],
  ['role', ['persona', 'dan', 'unbound', 'mode']],
  ['leak', ['prompt', 'system', 'reveal', 'secret']],
  ['delimiter', ['tag', 'role', 'border']],
  ['override', ['drop', 'safety', 'obey', 'refuse']],
];

function kindOf({ tokens }: Sentence): string {
  const has = new Set(tokens.map(({ concept }) => CONCEPTS[concept]));
  return KINDS.find(([, concepts]) => concepts.some((name) => has.has(name)))?.[0] ?? 'address';
}
