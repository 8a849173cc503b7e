/** Groups of tools that count their loads, and an agent that has them: for the tests of deferred-tools. */
import { Agent, type AgentOptions, type Tool, textOf, tool } from 'allium';
import { type DeferredToolsOptions, deferredTools, type ToolGroup } from 'allium/middleware/deferred-tools';
import { type Script, scriptedModel } from 'allium/testing';
import { z } from 'zod';

export const echo = (name: string, more: object = {}): Tool =>
  tool({
    name,
    description: `Does ${name}.`,
    input: z.object({ id: z.number() }),
    execute: ({ id }) => `${name} ${id}`,
    ...more,
  });

export interface Counted extends ToolGroup {
  loads: number;
}

export function groupOf(id: string, names: readonly string[], make: (name: string) => Tool = echo): Counted {
  const group: Counted = {
    id,
    title: id,
    description: `Everything about ${id}.`,
    toolNames: names,
    loads: 0,
    load: () => {
      group.loads++;
      return names.map(make);
    },
  };
  // Only the options are options.
  Object.defineProperty(group, 'loads', { enumerable: false });
  return group;
}

export const billing = () => groupOf('billing', ['invoice', 'refund']);
export const via = (name: string, args: unknown = { id: 1 }, id?: string) => ({
  name: 'deferred_tool_call',
  args: { tool_name: name, arguments: args },
  ...(id && { id }),
});
export const load = (...groups: string[]) => ({ name: 'load_tools', args: { groups } });

export function setup(
  script: readonly Script[],
  options: Partial<DeferredToolsOptions> = {},
  agent: Partial<AgentOptions> = {},
) {
  const group = billing();
  const model = scriptedModel(script);
  const { middleware = [], ...rest } = agent;
  const made = new Agent({
    model,
    middleware: [deferredTools({ groups: [group], ...options }), ...(middleware as [])],
    ...rest,
  });
  return { group, model, agent: made };
}

export const results = (messages: readonly { role: string }[]) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));
