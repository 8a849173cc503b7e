/** What the tests of child-run begin with. */
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Decision,
  type Message,
  memoryStore,
  type RunResult,
  type Store,
  textOf,
  tool,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { type Answer, scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

/** A model that answers by how many answers there are already, whichever process asks. */
export const byTurn = (...answers: Answer[]) =>
  scriptedModel(
    [
      ({ messages }) =>
        answers[messages.filter(({ role }) => role === 'assistant').length] ?? 'Nothing more.',
    ],
    { repeat: true },
  );
export const call = (name: string, args: unknown = { prompt: `for ${name}` }, id?: string) => ({
  name,
  args,
  ...(id && { id }),
});
export const toolTexts = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
export const childEvents = (events: readonly AgentEvent[]) =>
  events.flatMap((event) =>
    event.type === 'tool_execution_update' ? [event.details as { agentId: string; event: AgentEvent }] : [],
  );
export const answersTo = ({ pending }: Pick<RunResult, 'pending'>, decision: Decision) =>
  Object.fromEntries(pending.map(({ id }) => [id, decision]));

/** A clerk who pays when somebody agreed, asked by a boss. Each call makes all of it anew, as another process would. */
export function office({
  store = memoryStore(),
  paid = [],
  ...more
}: {
  store?: Store;
  paid?: number[];
  boss?: Partial<AgentOptions>;
  clerk?: Partial<AgentOptions>;
} = {}) {
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    execute: ({ amount }) => {
      paid.push(amount);
      return `Paid ${amount}.`;
    },
  });
  const clerk = new Agent({
    name: 'clerk',
    model: byTurn(toolCalls(call('pay', { amount: 7 }, 'p')), text('The clerk has paid.')),
    tools: [pay],
    middleware: [approval()],
    ...more.clerk,
  });
  const boss = new Agent({
    model: byTurn(toolCalls(call('clerk', { prompt: 'Pay 7.' }, 'c')), text('All is paid.')),
    tools: [clerk.asTool({ name: 'clerk', description: 'Asks the clerk.' })],
    store,
    ...more.boss,
  });
  return { clerk, boss, store, paid, session: boss.session('s') };
}
