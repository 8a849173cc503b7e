/** What a question to a human may look like. */

import { unwritable } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { isOf, type Kind } from '../lib/shapes.js';
import type { Decision, Request } from '../protocol/store.js';

const REQUEST: Kind = kinds.shape({
  title: kinds.text,
  details: kinds.kind('JSON', (value) => typeof value !== 'function' && unwritable(value) === undefined),
  timeoutMs: kinds.timeout,
  decisions: kinds.listOf(
    kinds.oneOf<Decision['type']>('approve', 'edit', 'reject', 'respond'),
    undefined,
    1,
  ),
  key: kinds.text,
  remember: kinds.flag,
  onRequest: kinds.func(),
} satisfies Record<keyof Request, Kind>);

/** Is this a valid request for `ask` and `ctx.suspend()`? */
export function isRequest(value: unknown): value is Request {
  return isOf(REQUEST, value);
}
