/** Who is to blame for an error that a hook threw. */

import { type Attribution, attribute } from '../lib/errors.js';
import { isControl } from '../protocol/signals.js';
import type { LayerContext } from './context.js';

/** Notes that this error is the middleware's own, and returns it. A control signal is latched instead. */
export function owned(
  name: string,
  hook: string,
  error: unknown,
  ctx: LayerContext,
  more?: Partial<Attribution>,
): unknown {
  if (isControl(error)) ctx._run.cross(error, ctx, name);
  else attribute(error, { middleware: name, hook, ...more }, ctx);
  return error;
}
