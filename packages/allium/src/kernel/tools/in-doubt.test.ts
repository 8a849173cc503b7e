/** Calls that had begun when the process died, and a program that goes on differently: nobody reads that they didn't run. */
import { Agent, type AgentOptions, type Middleware, memoryStore, type Store, textOf, tool } from 'allium';
import { deferredTools, type ToolGroup } from 'allium/middleware/deferred-tools';
import { scriptedModel, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, storeWith } from '../../../../../test/run-checks.js';

const IN_DOUBT = expect.stringMatching(/^In doubt: "\w+" had started .* It was not run again\.$/);

type Program = Omit<AgentOptions, 'model'>;

/** One program dies when it has paid, and another goes on. Returns the results that the model reads in the end. */
async function readAfter(
  script: Parameters<typeof scriptedModel>[0],
  before: (pay: ReturnType<typeof payWith>) => Program,
  after: (pay: ReturnType<typeof payWith>) => Program,
): Promise<readonly string[]> {
  const store = memoryStore();
  const paid: number[] = [];
  let dead = false;
  const append: Store['append'] = (id, seq, entries) => {
    dead ||= paid.length > 0 && entries.some(({ type }) => type === 'tool_finished');
    if (dead) throw new Error('power cut');
    return store.append(id, seq, entries);
  };
  const first = { ...before(payWith(paid)), store: storeWith(store, { append }) };
  const dying = new Agent({ ...first, model: scriptedModel([...script, 'Paid.']) }).session('s');
  await expect(dying.run('go')).rejects.toThrow('power cut');
  const session = new Agent({ ...after(payWith(paid)), model: scriptedModel(['ok']), store }).session('s');
  await session.resume();
  const messages = await session.messages();
  expectValidHistory(messages);
  expect(paid).toHaveLength(1);
  return messages.filter(({ role }) => role === 'tool').map(textOf);
}

const payWith =
  (paid: number[]) =>
  (input: z.ZodType = z.object({})) =>
    tool({ name: 'pay', description: '', input, execute: () => `paid ${paid.push(1)}` });

const denying: Middleware = {
  name: 'denying',
  guard: { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'Denied.' }) },
};
const failing: Middleware = {
  name: 'failing',
  resolveToolCall: () => {
    throw new Error('No registry.');
  },
};

it.each<[string, Parameters<typeof readAfter>[2]]>([
  ['the tool is gone', () => ({})],
  ['its schema has changed', (pay) => ({ tools: [pay(z.object({ sum: z.number() }))] })],
  ['a hook fails to resolve it', (pay) => ({ tools: [pay()], middleware: [failing] })],
  ['a guard denies it', (pay) => ({ tools: [pay()], middleware: [denying] })],
  ['no more calls are allowed', (pay) => ({ tools: [pay()], limits: { toolCalls: 0 } })],
])('is in doubt if %s', async (_, after) => {
  expect(await readAfter([toolCalls({ name: 'pay' })], (pay) => ({ tools: [pay()] }), after)).toEqual([
    IN_DOUBT,
  ]);
});

it.each([
  ['dispatch', { name: 'deferred_tool_call', args: { tool_name: 'pay' } }],
  ['inject', { name: 'pay' }],
] as const)('is in doubt if its deferred tool cannot be loaded: %s', async (strategy, call) => {
  const loading = (load: ToolGroup['load']): Program => ({
    middleware: [
      deferredTools({
        strategy,
        groups: [{ id: 'g', title: 'Money', description: 'Pays.', toolNames: ['pay'], load }],
      }),
    ],
  });
  const read = await readAfter(
    [toolCalls({ name: 'load_tools', args: { groups: ['g'] } }), toolCalls(call)],
    (pay) => loading(() => [pay()]),
    () => loading(() => Promise.reject(new Error('Registry down.'))),
  );
  expect(read[1]).toEqual(IN_DOUBT);
});

it('is not in doubt if it named no tool: it never began', async () => {
  const same: Parameters<typeof readAfter>[2] = (pay) => ({ tools: [pay()] });
  expect(await readAfter([toolCalls({ name: 'pay' }, { name: 'nope' })], same, same)).toEqual([
    IN_DOUBT,
    'There is no tool "nope". Available: pay.',
  ]);
});
