/** Keeps your own words and patterns out of what goes in and comes out. */
import type { Middleware } from 'allium';
import { checkFields, type Kind, kinds, type OptionsOf } from 'allium/kit';
import type { Finding } from '../scan/finding.js';
import { SEARCH_FIELDS, searchGuard } from '../scan/guard.js';
import { linearPattern, type Search, wordPattern } from '../scan/patterns.js';
import { inPlainText } from '../scan/plain.js';

export const OPTIONS = {
  ...SEARCH_FIELDS,
  /** Words and phrases that may not pass, as whole words, in any case. */
  keywords: kinds.listOf(kinds.nonEmptyText),
  /** Patterns that may not pass: regular expressions, or their sources. They run in linear time (RE2). */
  patterns: kinds.listOf(
    kinds.kind<RegExp | string>(
      'a regular expression or its source',
      (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
      { schema: { type: 'string' } },
    ),
  ) as Kind<readonly (RegExp | string)[]>,
  /** Replaces what was cut. @default '[removed]' */
  replacement: kinds.text,
};

export type ContentFilterOptions = OptionsOf<typeof OPTIONS>;

/** How long a match of a pattern may be to be cut in a stream, unless `window` says otherwise. */
const PATTERN_WINDOW = 128;

/**
 * Cuts, refuses or reports words and patterns, streamed or not, also with invisible, full-width or encoded characters.
 *
 * @example
 * new Agent({ model, middleware: [contentFilter({ keywords: ['project falcon'], action: 'block' })] });
 */
export function contentFilter(options: ContentFilterOptions = {}): Middleware {
  checkFields('contentFilter()', OPTIONS, options);
  const { keywords = [], patterns = [], replacement = '[removed]' } = options;
  const searches: [string, Search][] = patterns.map((pattern, i) => [
    `pattern-${i + 1}`,
    linearPattern(`patterns[${i}]`, pattern),
  ]);
  if (keywords.length > 0) searches.unshift(['keyword', wordPattern(keywords)]);
  const longest = Math.max(1, ...keywords.map((word) => word.length + 8 * (word.split(/\s+/).length - 1)));
  // Three characters for each, as with percent signs.
  const disguised = 3 * longest + 2;
  const window = options.window ?? (patterns.length > 0 ? Math.max(PATTERN_WINDOW, disguised) : disguised);
  const detect = inPlainText((text, from) => {
    const found: Finding[] = [];
    for (const [kind, search] of searches)
      search(text, (start, end) => found.push({ start, end, kind }), from);
    return found;
  });
  return searchGuard(options, {
    kind: 'content-filter',
    hold: window,
    detect,
    replace: () => replacement,
    guard: { originals: true },
  });
}
