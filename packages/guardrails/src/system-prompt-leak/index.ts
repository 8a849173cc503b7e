/** Keeps the system prompt out of answers. */
import { defineState, type GuardContext, type Middleware } from 'allium';
import { checkFields, kinds, type OptionsOf } from 'allium/kit';
import { hiddenTexts } from '../prompt-injection/decode.js';
import { normalise } from '../prompt-injection/normalise.js';
import type { Finding } from '../scan/finding.js';
import { SEARCH_FIELDS, searchGuard } from '../scan/guard.js';

export const OPTIONS = {
  ...SEARCH_FIELDS,
  /** How many words in a row must match the prompt. @default 8 */
  words: kinds.integer(3, 100),
  /** Texts of the prompt that may be said, such as a greeting. */
  allow: kinds.listOf(kinds.nonEmptyText),
  /** Replaces words of the prompt that were cut. @default '[removed]' */
  replacement: kinds.text,
};

export type SystemPromptLeakOptions = OptionsOf<typeof OPTIONS>;

/**
 * Cuts passages of the system prompt out of answers and arguments, even if they are disguised by case, punctuation,
 * invisible characters or an encoding.
 *
 * @example
 * new Agent({ model, systemPrompt, middleware: [systemPromptLeak({ words: 6 })] });
 */
export function systemPromptLeak(options: SystemPromptLeakOptions = {}): Middleware {
  checkFields('systemPromptLeak()', OPTIONS, options);
  const { words: least = 8, allow = [], replacement = '[removed]' } = options;
  /** The prompt of the current call, as it was sent. */
  const prompt = defineState({ name: 'prompt', scope: 'run', durable: false, initial: '' });
  let known:
    | { readonly prompt: string; readonly passages: ReadonlySet<string>; readonly length: number }
    | undefined;
  const passagesOf = (text: string) => {
    if (known?.prompt !== text) known = { prompt: text, ...passages(text, allow, least) };
    return known;
  };
  return searchGuard(options, {
    kind: 'system-prompt-leak',
    points: ['output', 'thinking', 'tool-args'],
    hold: options.window ?? Math.max(256, least * 24),
    severity: 'high',
    detect(text, _, ctx) {
      const { passages: wanted, length } = passagesOf(promptOf(ctx, (context) => context.state.get(prompt)));
      if (wanted.size === 0) return [];
      const found = repeated(text, wanted, length);
      for (const hidden of hiddenTexts(text))
        if (repeated(hidden.text, wanted, length).length > 0)
          found.push({ start: hidden.start, end: hidden.end, kind: 'encoded-prompt' });
      return found;
    },
    replace: () => replacement,
    more: {
      state: [prompt],
      beforeModel(ctx) {
        ctx.state.set(prompt, ctx.systemPrompt);
      },
    },
  });
}

/** The prompt at the innermost point, if the context has it; otherwise as this layer saw it. */
function promptOf(
  { context }: GuardContext,
  remembered: (context: GuardContext['context']) => string,
): string {
  const { systemPrompt } = context as { systemPrompt?: unknown };
  return typeof systemPrompt === 'string' && systemPrompt !== '' ? systemPrompt : remembered(context);
}

interface Word {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** Words without marks, and where they stand. */
function wordsOf(text: string): Word[] {
  const plain = normalise(text);
  return [...plain.text.matchAll(/[\p{L}\p{N}]+/gu)].map(({ 0: word, index }) => ({
    word,
    start: plain.start(index),
    end: plain.end(index + word.length - 1),
  }));
}

/** Every row of `least` words of a prompt; a shorter prompt is one row. */
function passages(
  prompt: string,
  allow: readonly string[],
  least: number,
): { readonly passages: ReadonlySet<string>; readonly length: number } {
  const all = wordsOf(prompt).map(({ word }) => word);
  const length = Math.min(least, all.length);
  const rows = new Set<string>();
  if (length < 3) return { passages: rows, length };
  for (let i = 0; i + length <= all.length; i++) rows.add(all.slice(i, i + length).join(' '));
  for (const text of allow) {
    const said = wordsOf(text).map(({ word }) => word);
    for (let i = 0; i + length <= said.length; i++) rows.delete(said.slice(i, i + length).join(' '));
  }
  return { passages: rows, length };
}

/** Where rows of the prompt are; overlapping ones count as one. */
function repeated(text: string, wanted: ReadonlySet<string>, length: number): Finding[] {
  const words = wordsOf(text);
  const found: { start: number; end: number; kind: string }[] = [];
  for (let i = 0; i + length <= words.length; i++) {
    const row = words.slice(i, i + length);
    if (!wanted.has(row.map(({ word }) => word).join(' '))) continue;
    const [start, end] = [row[0]!.start, row.at(-1)!.end];
    const last = found.at(-1);
    if (last && start <= last.end) last.end = end;
    else found.push({ start, end, kind: 'system-prompt' });
  }
  return found;
}
