/** `window()`: how much of a stream a guard holds back. */

import { invalidOption } from '../kernel/lib/errors.js';
import type { Window } from '../kernel/protocol/guard.js';

/**
 * Catches every match of up to `chars` characters (UTF-16 units), however the text is chunked. While text streams, the
 * guard holds back at least `chars` and less than `chars + max(16, chars / 4)`, because it searches in steps and not at every
 * delta. A span that may still grow is held back longer, with everything after it. Several guards on one text follow each
 * other, so what they hold back adds up. Adjacent blocks of a kind are one text; its end releases everything.
 */
export function window(chars: number): Window {
  if (!Number.isInteger(chars) || chars < 1) throw invalidOption('chars', 'an integer ≥ 1', chars);
  return { chars };
}
