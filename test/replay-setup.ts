/** What the tests of index begin with. */
import { Agent, type AgentEvent, type AgentOptions, type Middleware, tool } from 'allium';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import {
  type Collected,
  chunks,
  collect,
  type Scenario,
  type Script,
  scriptedModel,
  text,
} from 'allium/testing';
import { z } from 'zod';

// ── Laws ─────────────────────────────────────────────────────────────────────────────────────────────────────

export const recorded: Scenario = {
  name: 'a conversation that is on the cassette',
  input: 'The recorded question.',
  answers: [
    chunks(
      'Let ',
      'me see.',
      { type: 'tool-call', id: 'a', name: 'kit_add', arguments: '{"a":40,"b":2}' },
      { type: 'tool-call', id: 'b', name: 'kit_slow', arguments: '{"value":"x"}' },
    ),
    text('42.'),
  ],
};
export const add = tool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

export type Setup = Omit<AgentOptions, 'model' | 'middleware'> & { readonly outside?: readonly Middleware[] };

/** Records a run and returns the cassette. */
export async function recording(script: readonly Script[], input = 'hi', setup: Setup = {}) {
  const { outside = [], ...options } = setup;
  const lines: string[] = [];
  const model = scriptedModel(script);
  const agent = new Agent({ ...options, model, middleware: [...outside, record({ to: lines })] });
  return { lines, run: await collect(agent.stream(input)) };
}

/** An agent whose model is never to be called. */
export function replaying(lines: readonly string[], { outside = [], ...options }: Setup = {}) {
  const model = scriptedModel([]);
  const agent = new Agent({ ...options, model, middleware: [...outside, replay({ from: lines })] });
  return { agent, model };
}

/** The events of a run without its ids, tool events that ran side by side in the order of their calls. */
export function eventsOf({ events }: Collected): unknown[] {
  const { runId, sessionId } = events[0]!;
  const out: AgentEvent[] = [];
  let batch: AgentEvent[] = [];
  const callOf = (event: AgentEvent) =>
    'toolCall' in event ? event.toolCall.id : (event as { toolCallId: string }).toolCallId;
  for (const event of events) {
    if (event.type.startsWith('tool_execution')) batch.push(event);
    else {
      out.push(...batch.sort((a, b) => callOf(a).localeCompare(callOf(b))), event);
      batch = [];
    }
  }
  return JSON.parse(JSON.stringify(out).replaceAll(runId, 'RUN').replaceAll(sessionId, 'SESSION'));
}
