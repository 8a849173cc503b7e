/** What the tests of guard-calls begin with. */
import { type Agent, type AgentEvent, type Guard, type RunResult, type Tool, textOf, tool } from 'allium';
import { z } from 'zod';

export const make = (name: string, execute: Tool['execute']): Tool =>
  tool({ name, description: name, input: z.any(), execute }) as Tool;

const SECRET = /SECRET/g;
export const find: Guard['find'] = (text) =>
  [...text.matchAll(SECRET)].map(({ index, 0: found }) => ({ start: index, end: index + found.length }));

export const MODES = ['run', 'observer', 'stream'] as const;
export type Mode = (typeof MODES)[number];

/** Runs the same agent unwatched, with an observer, and with a consumer. */
export async function outcome(
  mode: Mode,
  make: (observers: ((event: AgentEvent) => void)[]) => Agent,
  seen: AgentEvent[] = [],
  signal?: AbortSignal,
): Promise<RunResult> {
  const agent = make(mode === 'observer' ? [(event) => void seen.push(event)] : []);
  if (mode !== 'stream') return agent.run('go', { signal }).catch((error) => error.result);
  const stream = agent.stream('go', { signal });
  try {
    for await (const event of stream) seen.push(event);
  } catch {
    // The result tells.
  }
  return stream.result.catch((error) => error.result);
}

export const toolTexts = ({ messages }: RunResult): string[] =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
