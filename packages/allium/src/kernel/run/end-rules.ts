/** The decision hooks that say whether a run goes on: the rest of the table in `rules`. */
import type { TurnContext } from '../context/context.js';
import type { Message } from '../messages/messages.js';
import { ask, type Injected } from '../plan/rules.js';
import type { Hooks, PlannedHook } from '../protocol/plan.js';
import type { Stop, StoppingReason } from '../protocol/result.js';
import type { Awaitable } from '../protocol/store.js';

type StopAnswer = boolean | { reason: StoppingReason; message?: string } | undefined;

export function shouldStopAfterTurn(hooks: Hooks, ctx: TurnContext, from = 0): Awaitable<Stop | undefined> {
  for (let i = from; i < hooks.length; i++) {
    const planned = hooks[i]!;
    const answer = ask<StopAnswer>(planned, ctx);
    if (answer instanceof Promise)
      return answer.then((given) => stopOf(planned, given) ?? shouldStopAfterTurn(hooks, ctx, i + 1));
    const stop = stopOf(planned, answer);
    if (stop) return stop;
  }
  return undefined;
}

function stopOf({ name }: PlannedHook, answer: StopAnswer): Stop<StoppingReason> | undefined {
  if (answer === undefined || answer === false) return undefined;
  if (answer === true) return { reason: 'stopped', message: `"${name}" stopped the run.`, by: name };
  return { ...answer, by: name };
}

export async function onRunEnd(hooks: Hooks, ctx: TurnContext): Promise<readonly Injected[]> {
  const all: Injected[] = [];
  for (const planned of hooks) {
    const messages = await ask<readonly Message[]>(planned, ctx);
    for (const message of messages ?? []) all.push({ message, by: planned.name });
  }
  return all;
}
