/** The other calls of an answer that asks: what useChat shows of them, and when it sends the answers. */
import { Agent, memoryStore, tool } from 'allium';
import { serve } from 'allium/http';
import { questionsAnswered } from 'allium/http/client';
import { approval } from 'allium/middleware/approval';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

interface Part {
  readonly type: string;
  readonly state?: string;
  readonly approval?: object;
  readonly output?: unknown;
}

const input = z.object({});
const tools = [
  tool({ name: 'pay', description: 'Pays.', input, execute: () => 'Paid.' }),
  tool({ name: 'look', description: 'Looks.', input, execute: () => 'Nothing.' }),
  tool({
    name: 'ask',
    description: 'Asks.',
    input,
    async execute(_, ctx) {
      const { type } = await ctx.suspend({ title: 'Which one?' });
      await ctx.update('Thinking.');
      return type;
    },
  }),
];

function setup(script: Parameters<typeof scriptedModel>[0]) {
  const agent = new Agent({
    model: scriptedModel(script),
    store: memoryStore(),
    tools,
    middleware: [approval({ policy: { pay: 'ask', '*': 'allow' } })],
  });
  const handler = serve({ agents: agent, authorize: () => ({}), show: { tools: true } });
  const post = async (message: object): Promise<readonly Part[]> => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ id: 'c', messages: [message] });
    const response = await handler(new Request('http://x/chat', { method: 'POST', headers, body }));
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
    return lines.map((line) => JSON.parse(line.slice('data: '.length)) as Part);
  };
  return {
    session: agent.session('c'),
    say: (id: string) => post({ id, role: 'user', parts: [{ type: 'text', text: 'Hi' }] }),
    answer: (parts: readonly Part[]) => post({ id: 'a', role: 'assistant', parts }),
    /** The calls of the last message, when the history is loaded. */
    async loaded(sdk: number): Promise<readonly Part[]> {
      const response = await handler(new Request(`http://x/chat/c?sdk=${sdk}`));
      const { messages } = (await response.json()) as { messages: { parts: Part[] }[] };
      return messages.at(-1)!.parts.filter(({ type }) => type.startsWith('tool-'));
    },
  };
}

it('count as approved in AI SDK 7, whose own function only sends the answers then', async () => {
  const calls = toolCalls({ name: 'look', args: {}, id: '1' }, { name: 'pay', args: {}, id: '2' });
  const { say, answer, loaded, session } = setup([calls, text('Done.')]);
  const parts = await say('1');
  const [request] = await session.pending();
  const auto = { approvalId: 'auto 1' };
  expect(parts.filter(({ type }) => type.startsWith('tool-approval'))).toEqual([
    { type: 'tool-approval-request', approvalId: request!.id, toolCallId: '2' },
    { type: 'tool-approval-request', ...auto, toolCallId: '1', isAutomatic: true },
    { type: 'tool-approval-response', ...auto, approved: true },
  ]);
  const waiting = { type: 'tool-pay', state: 'approval-requested', approval: { id: request!.id } };
  const approved = { id: 'auto 1', approved: true, isAutomatic: true };
  const look = { type: 'tool-look', state: 'approval-responded', approval: approved };
  expect(await loaded(7)).toMatchObject([look, waiting]);
  expect(await loaded(6)).toMatchObject([{ type: 'tool-look', state: 'input-available' }, waiting]);
  const pay = { ...waiting, state: 'approval-responded', approval: { id: request!.id, approved: true } };
  // Twice: the page sends them again if the connection breaks.
  for (let i = 0; i < 2; i++) {
    const outputs = (await answer([look, pay])).flatMap(({ output }) => output ?? []);
    expect(outputs).toEqual(['Nothing.', 'Paid.']);
  }
});

it('that are done show as done when the history is loaded', async () => {
  // Models may give the calls of another answer the same ids.
  const calls = toolCalls({ name: 'look', args: {}, id: '1' }, { name: 'ask', args: {}, id: '2' });
  const { say, answer, loaded, session } = setup([calls, calls, text('Done.')]);
  for (const id of ['1', '2']) {
    await say(id);
    for (const sdk of [5, 6, 7])
      expect(await loaded(sdk)).toMatchObject([
        { type: 'tool-look', state: 'output-available', output: 'Nothing.' },
        { type: 'tool-ask', state: sdk === 5 ? 'input-available' : 'approval-requested' },
      ]);
  }
  const [request] = await session.pending();
  const approved = { id: request!.id, approved: true };
  const parts = await answer([{ type: 'tool-ask', state: 'approval-responded', approval: approved }]);
  expect(parts.slice(0, 2)).toMatchObject([{ type: 'start' }, { output: 'Thinking.', preliminary: true }]);
  const question = (await session.messages()).findLast(({ role }) => role === 'user')!;
  await session.rewind(question.id);
  expect(await loaded(7)).toEqual([]);
});

it.each([
  [['approval-responded', 'input-available'], true],
  [['approval-responded', 'approval-requested'], false],
  [['output-available'], false],
  [[], false],
] as const)('questionsAnswered looks at the questions only: %j', (states, answered) => {
  const last = { role: 'assistant', parts: states.map((state) => ({ type: 'tool-pay', state })) };
  expect(questionsAnswered({ messages: [last] })).toBe(answered);
  expect(questionsAnswered({ messages: [last, { role: 'user', parts: [] }] })).toBe(false);
  expect(questionsAnswered({ messages: [] })).toBe(false);
});
