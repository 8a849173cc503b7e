/** Finds texts that give orders to the model that reads them. */
import type { Finding } from '../scan/finding.js';
import { disguised, hiddenTexts } from './decode.js';
import { type Normalised, normalise } from './normalise.js';
import { ABOUT, SIGNS, type Sign } from './signs.js';

export interface InjectionDetectorOptions {
  /** The sum of weights that makes an injection. */
  readonly threshold: number;
  /** Also count what stands in quotation marks among words about attacks. */
  readonly strict: boolean;
}

/** Signs that stand further apart than this belong to different passages. */
const PASSAGE = 160;

/** Signs that tell of an injection by themselves. The others only make it worse: mails and manuals ask for things, too. */
const CORE = new Set(['override', 'role', 'leak', 'delimiter', 'address']);

interface Seen {
  readonly sign: Sign;
  readonly start: number;
  readonly end: number;
}

/** A passage of the original, and how sure the detector is: 1 is the usual threshold. */
export interface Injection extends Finding {
  readonly score: number;
}

export function injectionDetector({
  threshold,
  strict,
}: InjectionDetectorOptions): (text: string) => Injection[] {
  return (text) => {
    const plain = normalise(text);
    const found = passages(plain, plain.text, strict, threshold, false);
    const other = disguised(plain.text);
    if (other) found.push(...passages(plain, other.text, true, threshold, other.reversed));
    for (const hidden of hiddenTexts(text)) {
      // Nobody hides what may be read by all: what is encoded is judged without regard to what it talks about.
      const inside = normalise(hidden.text);
      const [worst] = passages(inside, inside.text, true, threshold * 0.7, false);
      if (worst)
        found.push({
          start: hidden.start,
          end: hidden.end,
          kind: `hidden-${worst.kind}`,
          score: worst.score,
        });
    }
    return found;
  };
}

function passages(
  { start, end }: Normalised,
  text: string,
  strict: boolean,
  threshold: number,
  reversed: boolean,
): Injection[] {
  const seen: Seen[] = [];
  for (const sign of SIGNS) {
    sign.pattern.lastIndex = 0;
    for (let match = sign.pattern.exec(text); match; match = sign.pattern.exec(text))
      seen.push({ sign, start: match.index, end: match.index + match[0].length });
  }
  if (seen.length === 0) return [];
  seen.sort((a, b) => a.start - b.start);
  const found: Injection[] = [];
  for (let first = 0; first < seen.length; ) {
    let last = first;
    while (last + 1 < seen.length && seen[last + 1]!.start - seen[last]!.end < PASSAGE) last++;
    const group = seen.slice(first, last + 1);
    const score = scoreOf(group, text, strict);
    if (score >= threshold) {
      const [from, to] = [group[0]!.start, Math.max(...group.map((one) => one.end)) - 1];
      const [a, b] = reversed ? [text.length - 1 - to, text.length - 1 - from] : [from, to];
      const heaviest = group.reduce((one, other) => (other.sign.weight > one.sign.weight ? other : one));
      found.push({ start: start(a), end: end(b), kind: heaviest.sign.kind, score });
    }
    first = last + 1;
  }
  return found;
}

/** Every sign counts once, less if it is quoted or talked about. */
function scoreOf(group: readonly Seen[], text: string, strict: boolean): number {
  const weights = new Map<Sign, number>();
  for (const one of group) {
    const weight = strict ? one.sign.weight : one.sign.weight * honesty(one, text);
    weights.set(one.sign, Math.max(weights.get(one.sign) ?? 0, weight));
  }
  // Signs of one kind say the same again: the second counts half.
  const kinds = new Map<string, number[]>();
  for (const [{ kind }, weight] of weights) kinds.set(kind, [...(kinds.get(kind) ?? []), weight]);
  if (![...kinds].some(([kind, list]) => CORE.has(kind) && Math.max(...list) >= 0.4)) return 0;
  let score = 0;
  for (const list of kinds.values())
    list
      .sort((a, b) => b - a)
      .forEach((weight, i) => {
        score += i === 0 ? weight : weight / 2;
      });
  return score;
}

/** 1 for an order, less for one that is quoted, questioned or described. */
function honesty({ start, end }: Seen, text: string): number {
  if (isNegated(text, start, end)) return 0;
  const around = text.slice(Math.max(0, start - 240), start) + text.slice(end, end + 160);
  const about = new Set(around.match(ABOUT)).size;
  const quoted = isQuoted(text, start, end);
  if (quoted && about > 0) return 0.2;
  if (about >= 3) return 0.3;
  if (about === 2) return 0.45;
  return isAsked(text, start) ? 0.5 : 1;
}

const NOT =
  /(?:\bn'|\bno |\bnon |\bnao |\bne |(?<![а-я])не |不要|请勿|别|勿|\bdon't |\bdo not |\bdoes not |\bdid not |\bnever |\bmust not |\bshould not |\bcannot |\bnot to |\bwithout )$/;

/** "Do not forget …", in the languages of the patterns. */
function isNegated(text: string, start: number, end: number): boolean {
  return (
    NOT.test(text.slice(Math.max(0, start - 12), start)) ||
    /vergess\w*(?: sie)? nicht|忘れず|忘れない/.test(text.slice(start, end))
  );
}

const QUOTES = new Set(['"', "'", '`']);

/** Does it stand between quotation marks, close by on both sides? */
function isQuoted(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 60), start);
  const after = text.slice(end, end + 80);
  for (const quote of QUOTES) {
    const opens = new RegExp(`(?:^|[\\s(:\\[>=,])${quote}[^${quote}]*$`).test(before);
    if (opens && new RegExp(`^[^${quote}]*${quote}(?:[\\s).,;:!?\\]<]|$)`).test(after)) return true;
  }
  return false;
}

/** "How do I ignore …", "can I skip …": a question of somebody who works with such things. */
function isAsked(text: string, start: number): boolean {
  return /\b(?:how (?:do|can|should|would|to)|what happens (?:if|when)|why (?:does|do|did|is)|can (?:i|we)|should (?:i|we)|is it possible to|does (?:it|the)|do (?:i|we) (?:have|need) to|i (?:want|need|tried|would like) to|we (?:want|need|tried|decided|had|should) to|let's|users? (?:can|may|might|could|should)|(?:it|this|which|that) (?:will|would|can|could|may|might|should|lets? you)|(?<!\byou )to)(?: \w+){0,2} $/.test(
    text.slice(Math.max(0, start - 60), start),
  );
}
