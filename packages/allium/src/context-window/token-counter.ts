/** Counts the tokens of a text: with a tokenizer if one is installed, otherwise by rule of thumb. */

import { checkFunction, invalidOption } from '../kit/index.js';

/** Tokens of a text. Called once per text, so it may take its time. It must not throw. */
export type TokenCounter = (text: string) => number;

/** A package that can count, and how it is asked. */
export interface TokenizerPackage {
  load(): Promise<unknown>;
  counter(module: never): TokenCounter;
}

/** The part of `gpt-tokenizer` that is used. */
interface GptTokenizer {
  countTokens(text: string, options: { disallowedSpecial: ReadonlySet<string> }): number;
}

/** The part of `tokenx` that is used. */
interface Tokenx {
  estimateTokenCount(text: string): number;
}

/**
 * How many characters the tokenizer gets at once. It takes quadratic time for a text without spaces, and histories
 * hold such texts: base64, minified code. A cut costs a token at most.
 */
const PIECE = 500;

/** By default it refuses texts that look like its control tokens. For us they are ordinary text. */
const NOTHING_SPECIAL = { disallowedSpecial: new Set<string>() };

/** Those that really split into tokens come first. */
const PACKAGES: readonly TokenizerPackage[] = [
  {
    load: () => import('gpt-tokenizer'),
    counter: (module: GptTokenizer) => (text) => {
      let tokens = 0;
      for (let at = 0; at < text.length; at += PIECE)
        tokens += module.countTokens(text.slice(at, at + PIECE), NOTHING_SPECIAL);
      return tokens;
    },
  },
  {
    load: () => import('tokenx'),
    counter: (module: Tokenx) => (text) => module.estimateTokenCount(text),
  },
];

let installed: Promise<TokenCounter> | undefined;

/** The counter of the first tokenizer that is installed. Looked for once per process. */
export function installedCounter(): Promise<TokenCounter> {
  installed ??= findCounter(PACKAGES);
  installed.catch(() => {
    installed = undefined;
  });
  return installed;
}

/** A missing package is skipped, but not one that is installed and broken. */
export async function findCounter(packages: readonly TokenizerPackage[]): Promise<TokenCounter> {
  for (const { load, counter } of packages) {
    try {
      return counter((await load()) as never);
    } catch (error) {
      if (!/MODULE_NOT_FOUND/.test(String((error as { code?: unknown } | null)?.code))) throw error;
    }
  }
  return roughCount;
}

/** A quarter token per ASCII character, one per character of scripts without spaces, half of one otherwise. */
export function roughCount(text: string): number {
  let quarters = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    quarters += code < 0x80 ? 1 : isDense(code) ? 4 : 2;
  }
  return Math.ceil(quarters / 4);
}

/** Chinese, Japanese and Korean, and each half of an emoji. */
function isDense(code: number): boolean {
  return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xdfff);
}

/** Checks the option `tokenCounter`, and what it returns. Undefined if it isn't given. */
export function checkedCounter(tokenCounter: TokenCounter | undefined): TokenCounter | undefined {
  if (tokenCounter === undefined) return undefined;
  checkFunction('tokenCounter', tokenCounter);
  return (text) => {
    const tokens = tokenCounter(text);
    if (typeof tokens === 'number' && tokens >= 0 && tokens < Number.POSITIVE_INFINITY) return tokens;
    throw invalidOption('tokenCounter', 'a function that returns a finite number ≥ 0', tokens);
  };
}
