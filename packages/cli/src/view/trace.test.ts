// The tree of a journal, also of one that is unusual.

import { Agent, type Entry, memoryStore, tool } from 'allium';
import { approval, cache } from 'allium/middleware';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { styleFor } from '../terminal/style.js';
import { traceOf, treeLines } from './trace.js';

const style = styleFor({}, {});
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ n: z.number() }),
  execute: () => 'paid',
});

async function linesOf(store: ReturnType<typeof memoryStore>, id: string, options = {}) {
  const lines = treeLines(traceOf(id, await store.read(id, 1), options), style);
  return lines.map((line) => line.replace(/\d+ ms/g, 'T').replace(/run r_.*/, 'run'));
}

it('shows a run that waits, and what was answered when it went on', async () => {
  const store = memoryStore();
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'pay', args: { n: 5 } }), text('done')]),
    tools: [pay],
    middleware: [approval()],
    store,
  });
  const session = agent.session('s');
  const { pending } = await session.run('pay');
  expect((await linesOf(store, 's')).at(-1)).toBe('         └─ asked: Run "pay"?');
  await session.resume({ answers: { [pending[0]!.id]: { type: 'edit', args: { n: 1 } } } });
  const lines = await linesOf(store, 's');
  expect(lines.some((line) => line.includes('asked: Run "pay"? → edit {"n":1} after T'))).toBe(true);
  expect(lines.at(-1)).toBe('   └─ done: final');
});

it('says which turns came from the cache, and what middleware remembered when asked', async () => {
  const store = memoryStore();
  const agent = new Agent({ model: scriptedModel(['Hello.']), middleware: [cache()], store });
  await agent.session('a').run('Hi');
  await agent.session('b').run('Hi');
  expect((await linesOf(store, 'b')).find((line) => line.includes('turn 1'))).toContain('from the cache');
});

it('shows errors, and runs that never ended', async () => {
  const store = memoryStore();
  const agent = new Agent({ model: scriptedModel([]), store });
  await agent
    .session('s')
    .run('Hi')
    .catch(() => {});
  const tree = traceOf('s', await store.read('s', 1));
  expect(tree.children[0]?.children.at(-1)).toMatchObject({ kind: 'end', bad: true });
  const entries = (await store.read('s', 1)).filter(({ type }) => type !== 'run_end');
  expect(traceOf('s', entries).children[0]?.children.map(({ kind }) => kind)).toEqual(['message']);
});

it("shows a person's answer once, although its outcome is journaled too", async () => {
  const store = memoryStore();
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'pay', args: { n: 1 } }), 'Done.']),
    tools: [pay],
    middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: { title: 'Pay?' } }), acceptMessage() {} }],
    store,
  });
  const { pending } = await agent.session('s').run('Pay.');
  await agent.session('s').resume({ answers: { [pending[0]!.id]: { type: 'respond', text: 'Paid it.' } } });
  const asked = (await linesOf(store, 's')).filter((line) => line.includes('asked: Pay?'));
  expect(asked).toHaveLength(1);
  expect(asked[0]!.match(/Paid it\./g)).toHaveLength(1);
});

it('shows state, and calls whose message is missing, without failing', () => {
  const at = { v: 1, at: 0 };
  const entries = [
    { ...at, seq: 1, type: 'state', cell: 'early', version: 1, value: 1 },
    { ...at, seq: 2, type: 'run_start', runId: 'r', plan: [] },
    { ...at, seq: 3, type: 'tool_started', runId: 'r', messageId: 'm', callId: 'lost' },
    { ...at, seq: 4, type: 'answer', runId: 'r', requestId: 'unknown', decision: { type: 'approve' } },
    { ...at, seq: 5, type: 'state', runId: 'r', cell: 'x', version: 1, value: { a: 1 } },
  ] as Entry[];
  const lines = treeLines(traceOf('s', entries, { state: true }), style);
  expect(lines.slice(2)).toEqual(['   ├─ lost', '   └─ state x = {"a":1}']);
  expect(traceOf('s', []).children).toEqual([]);
});

it('shows attempts before their outcome', async () => {
  const store = memoryStore();
  let calls = 0;
  const flaky = tool({
    name: 'flaky',
    description: 'Fails once.',
    input: z.object({}),
    execute: () => {
      if (calls++ === 0) throw new Error('not yet');
      return 'found';
    },
  });
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'flaky', args: {} }), text('done')]),
    tools: [flaky],
    middleware: [{ name: 'again', onError: () => 'retry' }],
    store,
    trace: 'changes',
  });
  await agent.session('s').run('go');
  const lines = (await linesOf(store, 's')).map((line) => line.replace(/ · T$/, '').trim());
  const at = lines.findIndex((line) => line.includes('flaky {}'));
  expect(lines.slice(at + 1, at + 4)).toEqual([
    expect.stringContaining('tool (execute) failed: not yet'),
    expect.stringContaining('again (onError) retry after: not yet'),
    expect.stringContaining('✓ found'),
  ]);
});
