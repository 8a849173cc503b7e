/** What models of Mistral insist on, whoever hosts them. */

import { digestOf } from './digest.js';

const FAMILY = /(mi|mini|code|dev|magi)stral|(mi|pi|vo)xtral/i;

/** Is it one of theirs? By the names of the provider and the model. */
export function isMistral({
  provider,
  model = '',
}: {
  readonly provider: string;
  readonly model?: string;
}): boolean {
  return FAMILY.test(provider) || FAMILY.test(model);
}

/** Stands between results and a user message: they refuse every request in which nobody has read the results. */
export const READ = 'I have read the results.';

/** Nine letters and digits, or they refuse the request. The model's own ids are like that. */
export function mistralId(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : digestOf(id).padStart(9, '0').slice(-9);
}
