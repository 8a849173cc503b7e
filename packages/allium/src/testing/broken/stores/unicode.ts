/** Breaks `unicode`: writes text as UTF-8 without escaping what UTF-8 cannot hold. */
import type { Store } from '../../../index.js';
import { brokenText } from './delegate.js';

export function lossyTextStore(): Store {
  return brokenText((text) => Buffer.from(text, 'utf8').toString('utf8'));
}
