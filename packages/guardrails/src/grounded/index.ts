/** Finds claims in an answer that nothing in its sources supports. */
import { type GuardContext, type Middleware, type Model, textOf } from 'allium';
import { checkFields, type Kind, kinds, type OptionsOf } from 'allium/kit';
import { JUDGE_FIELDS, judged } from '../asking/judge.js';
import type { Finding } from '../scan/finding.js';
import { COMMON_FIELDS, guardrailOf, searchGuard } from '../scan/guard.js';

/** Texts, or a function that returns those of a run. */
export type Sources = readonly string[] | ((ctx: GuardContext) => readonly string[]);

export const OPTIONS = {
  ...COMMON_FIELDS,
  ...JUDGE_FIELDS,
  /** What an answer may claim. @default what tools returned in this session */
  sources: kinds.either(kinds.names, kinds.func()) as Kind<Sources>,
  /** The share of a sentence's words that must be in the sources. @default 0.5 */
  support: kinds.number(0, 1),
  /** Compares the answer with the sources. @default words and numbers decide */
  model: kinds.model<Model>(),
  /** Replaces a sentence that was cut. @default '[unsupported]' */
  replacement: kinds.text,
};

export type GroundedOptions = OptionsOf<typeof OPTIONS>;

/**
 * Refuses answers with sentences that the sources do not support, and asks the model again. Without a model it
 * compares words and numbers: a number that is in no source is invented, and so is a sentence of other words.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [grounded()] });
 */
export function grounded(options: GroundedOptions = {}): Middleware {
  checkFields('grounded()', OPTIONS, options);
  const { sources = toolResults, support = 0.5, model, replacement = '[unsupported]' } = options;
  const sourcesOf = (ctx: GuardContext) => (typeof sources === 'function' ? sources(ctx) : sources);
  const own = { kind: 'grounded', points: ['final'], action: 'feedback' } as const;
  if (model) {
    const { timeoutMs, onUnclear, clock } = options;
    const policy =
      'Every claim of the text must follow from the sources. Greetings, questions and "I do not know" are no claims.';
    return guardrailOf(
      options,
      { ...own, more: { extraLlmCalls: () => [model] } },
      {
        judge: (subject, ctx) =>
          judged(
            subject,
            ctx,
            { model, policy, kind: 'unsupported', timeoutMs, onUnclear, clock },
            sourcesOf(ctx),
          ),
      },
    );
  }
  return searchGuard(options, {
    ...own,
    // Sources may be anywhere in the history.
    more: { looksBack: undefined },
    hold: 'full',
    detect(text, _, ctx) {
      const given = sourcesOf(ctx);
      return given.length === 0 ? [] : unsupported(text, given.join('\n'), support);
    },
    replace: () => replacement,
  });
}

function toolResults({ context }: GuardContext): readonly string[] {
  return context.history.filter(({ role }) => role === 'tool').map((message) => textOf(message));
}

const SENTENCE = /[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]*)*[.!?\n]*/g;
const SMALL = new Set(
  'the a an and or but if then than that this these those is are was were be been being has have had do does did will would can could may might should must of to in on at by for from with about as into over after before between out up down it its they them their he she his her you your we our i me my not no yes so also there here what which who when where how why all any some more most other such only own same too very just'.split(
    ' ',
  ),
);

/** Sentences whose numbers or words the sources do not have. */
function unsupported(text: string, sources: string, support: number): Finding[] {
  const known = new Set(wordsOf(sources));
  const found: Finding[] = [];
  for (const { 0: sentence, index } of text.matchAll(SENTENCE)) {
    const trimmed = sentence.trim();
    // Questions claim nothing.
    if (trimmed === '' || trimmed.endsWith('?')) continue;
    const words = wordsOf(trimmed);
    const numbers = words.filter((word) => /\d/.test(word));
    const start = index + sentence.indexOf(trimmed);
    const finding = (kind: string) => found.push({ start, end: start + trimmed.length, kind });
    if (numbers.some((number) => !known.has(number))) finding('unsupported-number');
    else if (words.length >= 4 && words.filter((word) => known.has(word)).length / words.length < support)
      finding('unsupported-sentence');
  }
  return found;
}

/** Words that mean something, without their endings; numbers without separators. */
function wordsOf(text: string): string[] {
  const all = text.toLowerCase().match(/\d[\d.,]*\d|\d|[\p{L}]{2,}/gu) ?? [];
  return all
    .filter((word) => !SMALL.has(word))
    .map((word) => (/^\d/.test(word) ? word.replace(/,/g, '') : stem(word)));
}

function stem(word: string): string {
  return word.length > 4 ? word.replace(/(?:ies|es|s|ed|ing|ly|er|en)$/, '') : word;
}
