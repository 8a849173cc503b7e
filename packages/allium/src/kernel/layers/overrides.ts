/** What `next({ … })` may say about the call it makes. */

import type { LayerContext } from '../context/context.js';
import { noteOverride } from '../context/request-changes.js';
import { AlliumError, isRecord, shown } from '../lib/errors.js';
import { checkKeys } from '../lib/shapes.js';
import type { Seam } from '../protocol/middleware.js';
import { type Checks, checkEach, checkTimeout } from '../protocol/options.js';

const OVERRIDES: Record<Seam, readonly string[]> = {
  run: [],
  model: ['messages', 'systemPrompt', 'tools', 'model', 'settings'],
  tool: ['args', 'timeoutMs'],
};

/** The rest is checked where the call is made. */
const CHECKS: Checks = { timeoutMs: checkTimeout };

/** What is wrong with an override, if anything. */
export function badOverride(seam: Seam, override: unknown): unknown {
  const next = `next() at the ${seam} seam`;
  const refused = (why: string) => new AlliumError('INVALID_OPTION', `${next} ${why}`);
  try {
    if (!isRecord(override)) return refused(`takes an object of overrides, got ${shown(override)}.`);
    if ('_call' in override) return refused('got a context, which it makes itself. Write next().');
    if (seam === 'run' && Object.keys(override).length > 0)
      return refused(`takes nothing, got ${shown(override)}.`);
    checkKeys(next, override, OVERRIDES[seam]);
    checkEach(override, CHECKS);
    return undefined;
  } catch (error) {
    return error;
  }
}

export function applyOverride(fork: LayerContext, override: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(override))
    if (value !== undefined) (fork as unknown as Record<string, unknown>)[key] = value;
  if (fork.seam === 'model') noteOverride(fork);
}
