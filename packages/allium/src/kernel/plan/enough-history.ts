/** How much of a long history a run needs: all of it, unless middleware leave the older messages out of requests. */

import { Cells } from '../context/cells.js';
import type { History } from '../journal/history.js';
import { readBack, readHistory } from '../journal/read-session.js';
import type { SessionState } from '../journal/session-state.js';
import { AlliumError, messageOf, shown } from '../lib/errors.js';
import { type Scope, untilAborted } from '../lib/scope.js';
import type { HistoryContext, Plan, PlannedMiddleware } from '../protocol/middleware.js';
import type { Awaitable, Store } from '../protocol/store.js';

/** Reads what the run needs of a history that was not read whole. `traced`: traces count from the first message. */
export function readEnough(
  store: Store,
  state: SessionState,
  plan: Plan,
  { scope, traced }: { readonly scope: Scope; readonly traced: boolean },
): Awaitable<void> {
  if (!state.history.isPartial) return;
  const shortening = plan.middleware.filter(({ middleware }) => middleware.enoughHistory);
  if (traced || shortening.length === 0 || plan.looksBack === Number.POSITIVE_INFINITY)
    return readHistory(store, state);
  const ctx = contextOf(state, plan);
  return readBack(store, state, async (history) => {
    if (history.start > firstNeeded(state, plan)) return false;
    for (const one of shortening) if (!(await untilAborted(ask(one, history, ctx), scope))) return false;
    return true;
  });
}

/** The index of the first message that is needed whatever middleware leave out of requests. */
function firstNeeded({ open, history }: SessionState, { looksBack }: Plan): number {
  const { length, pinnedAt = length } = history;
  return Math.max(0, Math.min(pinnedAt, (open?.from ?? length) - looksBack));
}

function contextOf(state: SessionState, plan: Plan): HistoryContext {
  const cells = new Cells(plan.cells, state, { cells: undefined });
  const { sessionId, tenant } = state;
  return { sessionId, tenant, state: { get: (cell) => cells.get(cell) } };
}

async function ask(
  { name, middleware }: PlannedMiddleware,
  history: History,
  ctx: HistoryContext,
): Promise<boolean> {
  let answer: unknown;
  try {
    answer = await middleware.enoughHistory!(history.view(), ctx);
  } catch (cause) {
    throw new AlliumError('MIDDLEWARE_ERROR', `enoughHistory of "${name}" failed: ${messageOf(cause)}`, {
      cause,
      data: { middleware: name, hook: 'enoughHistory' },
    });
  }
  if (typeof answer === 'boolean') return answer;
  throw new AlliumError(
    'INVALID_HOOK_RESULT',
    `enoughHistory of "${name}" returned ${shown(answer)}. Return true or false.`,
    { data: { middleware: name, hook: 'enoughHistory' } },
  );
}
