/** Merges the questions of several middleware about one call, so that a person is asked once. */

import { mapStrings, toStoredJson } from '../lib/json-texts.js';
import type { Decision, Request } from '../protocol/store.js';

/** A question about a call, and who asks it. */
export interface Asking {
  readonly request: Request;
  /** The middleware that asks. */
  readonly by: string;
  /** Others who ask about the same call. */
  readonly also?: readonly Asker[];
}

export type Asker = Pick<Asking, 'request' | 'by'>;

/** Everybody who asks, in order. */
export function askersOf({ request, by, also = [] }: Asking): readonly Asker[] {
  return [{ request, by }, ...also];
}

/** Merges two questions, in order. */
export function asking(first: Asking | undefined, next: Asking | undefined): Asking | undefined {
  if (!first || !next) return first ?? next;
  const also = [...askersOf(first), ...askersOf(next)].slice(1);
  return { request: first.request, by: first.by, also };
}

/** The same questions with `each` applied to what people read. */
export function reworded(ask: Asking, each: (text: string) => string): Asking {
  const [first, ...also] = askersOf(ask).map(({ by, request }): Asker => {
    const { title, details } = request;
    const words = {
      ...(title !== undefined && { title: each(title) }),
      ...(details !== undefined && { details: mapStrings(toStoredJson(details), each) }),
    };
    return { by, request: { ...request, ...words } };
  });
  return { ...first!, ...(also.length > 0 && { also }) };
}

/** The question of the first, restricted to answers that all of them accept. If there are none, it can only be rejected. */
export function narrowed([first, ...others]: readonly [Asker, ...Asker[]]): Request {
  let { request } = first;
  for (const { request: other } of others) {
    const { decisions = other.decisions } = request;
    const both = decisions?.filter((type) => other.decisions?.includes(type) ?? true);
    request = {
      ...request,
      ...(both && { decisions: both.length > 0 ? both : (['reject'] as const) }),
      ...(other.remember === false && { remember: false }),
    };
  }
  return request;
}

/** Does the question accept an answer of this type? */
export function takes({ decisions }: Pick<Request, 'decisions'>, type: Decision['type']): boolean {
  return decisions?.includes(type) ?? true;
}
