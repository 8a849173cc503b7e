/** The playground: an agent, some of its middleware switched off, in a store that is forgotten. */
import { Agent, type AgentEvent, RunError, type RunResult, type Store, textOf } from 'allium';
import { oneLine } from './cut.js';
import type { PlayEvent } from './wire.js';

export interface Play {
  readonly agent: Agent;
  readonly store: Store;
  readonly sessionId: string;
  readonly input: string;
  /** Names of middleware that are switched off. */
  readonly off: readonly string[];
  readonly signal: AbortSignal;
  readonly hear: (event: PlayEvent) => Promise<void>;
}

export class CannotPlay extends Error {
  override readonly name = 'CannotPlay';
}

export async function playOnce({ agent, store, sessionId, input, off, signal, hear }: Play): Promise<void> {
  const began = performance.now();
  const variant = without(agent, off, store);
  await hear({ type: 'start', sessionId });
  const stream = variant.session(sessionId).stream(input, {
    signal,
    trace: 'changes',
    // Questions wait for an answer of the inbox, as long as the page is there.
    onRequest: () => new Promise(() => {}),
  });
  let result: RunResult | undefined;
  let message: string | undefined;
  try {
    for await (const event of stream) {
      const told = toldOf(event);
      if (told) await hear(told);
    }
    result = await stream.result;
  } catch (error) {
    message = error instanceof Error ? error.message : String(error);
    if (error instanceof RunError) ({ result } = error);
  }
  await hear({
    type: 'end',
    status: result?.status ?? 'error',
    text: result?.text ?? '',
    ms: performance.now() - began,
    ...(result && { runId: result.runId, turns: result.turns, totalTokens: result.usage.totalTokens }),
    ...(result?.costUsd !== undefined && { costUsd: result.costUsd }),
    ...(result && { changes: result.changes.map(({ turn, by, what }) => ({ turn, by, what })) }),
    ...((message ?? result?.stop.message) && { message: message ?? result?.stop.message }),
  });
}

/** The same agent without some of its middleware, and over another store. */
function without(agent: Agent, off: readonly string[], store: Store): Agent {
  const { plan } = agent;
  if (plan.replaced.length > 0)
    throw new CannotPlay('This agent has hooks of its own beside its middleware, which Studio cannot copy.');
  const unknown = off.find((name) => !plan.names.includes(name));
  if (unknown !== undefined) throw new CannotPlay(`The agent has no middleware "${unknown}".`);
  const middleware = plan.middleware.filter(({ name }) => !off.includes(name)).map((one) => one.middleware);
  const brought = new Set(plan.middleware.flatMap((one) => one.middleware.tools ?? []));
  const { name, model, systemPrompt, settings, limits, sessionLimits, toolExecution, queue, priceOf } = agent;
  return new Agent({
    ...{ name, model, systemPrompt, settings, limits, sessionLimits, toolExecution, queue, priceOf },
    ...{ store, middleware, tools: plan.tools.filter((tool) => !brought.has(tool)) },
    ...(agent.tenant !== undefined && { tenant: agent.tenant }),
  });
}

function toldOf(event: AgentEvent): PlayEvent | undefined {
  switch (event.type) {
    case 'message_update':
      return event.delta.type === 'text' ? { type: 'text', text: event.delta.text } : undefined;
    case 'message_reset':
      return { type: 'reset' };
    case 'tool_execution_start':
      return { type: 'call', name: event.toolCall.name, arguments: event.toolCall.arguments };
    case 'tool_execution_end': {
      const { toolName: name, isError } = event.message;
      return { type: 'result', name, text: oneLine(textOf(event.message), 400), isError };
    }
    case 'tool_execution_waiting':
      return { type: 'waits', name: event.toolCall.name };
    case 'guard_verdict': {
      const { guard: by, action, point } = event.verdict;
      return { type: 'verdict', by, action, point };
    }
    default:
      return undefined;
  }
}
