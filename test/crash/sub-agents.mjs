// One process that works on a session whose sub-agent has to ask: node sub-agents.mjs '<JSON of Task>'. A boss asks a
// clerk, who asks a cashier, who may not pay before somebody agreed. It prints what came of it as one line of JSON.

import { Agent, textOf, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { subagents } from 'allium/middleware/subagents';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { openLedger } from './ledger.mjs';
import { openStore } from './stores.mjs';

/**
 * @typedef {object} Task
 * @property {'work' | 'answer'} part
 * @property {import('./stores.mjs').StoreAddress} store
 * @property {string} ledger
 * @property {number} [dieAfter] It is killed after so many appends.
 */

/** @type {Task} */
const task = JSON.parse(process.argv[2] ?? '');
const opened = await openStore(task.store);
const write = openLedger(task.ledger);
let appends = 0;
/** @type {import('allium').Store} */
const store = {
  append(id, seq, entries) {
    const last = opened.append(id, seq, entries);
    if (++appends === task.dieAfter) process.kill(process.pid, 'SIGKILL');
    return last;
  },
  read: (...args) => opened.read(...args),
  head: (...args) => opened.head(...args),
  list: (...args) => opened.list(...args),
  fork: (...args) => opened.fork(...args),
  delete: (...args) => opened.delete(...args),
  post: (...args) => opened.post(...args),
  take: (...args) => opened.take(...args),
};

/** A model that answers by how many answers there are already, whichever process asks. */
const byTurn = (/** @type {import('allium/testing').Answer[]} */ ...answers) =>
  scriptedModel(
    [
      ({ messages }) =>
        answers[messages.filter(({ role }) => role === 'assistant').length] ?? 'Nothing more.',
    ],
    { repeat: true },
  );
/** By hand: a library for schemas would take half of what a process does before it begins. */
const sum = /** @type {import('allium').StandardSchema<{ euros: number }>} */ ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof (/** @type {{ euros?: unknown } | null} */ (value)?.euros) === 'number'
        ? { value }
        : { issues: [{ message: 'Expected a number of euros.' }] },
    jsonSchema: {
      input: () => ({ type: 'object', properties: { euros: { type: 'number' } }, required: ['euros'] }),
    },
  },
});
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: sum,
  execute({ euros }, ctx) {
    write({ tool: 'pay', callId: ctx.toolCall.id, key: ctx.idempotencyKey });
    return `Paid ${euros} euros.`;
  },
});
const cashier = new Agent({
  name: 'cashier',
  model: byTurn(toolCalls({ name: 'pay', args: { euros: 900 } }), text('It is paid.')),
  tools: [pay],
  middleware: [approval()],
});
const clerk = {
  description: 'Does the paperwork.',
  systemPrompt: 'Do it.',
  model: byTurn(
    toolCalls({ name: 'cashier', args: { prompt: 'Pay 900 euros.' } }),
    text('The cashier has paid.'),
  ),
  tools: [cashier.asTool({ name: 'cashier', description: 'Asks the cashier.' })],
};
const boss = new Agent({
  model: byTurn(
    toolCalls({
      name: 'subagent',
      args: { name: 'Carl', task: 'Pay.', prompt: 'Pay the printer.', subagent_type: 'clerk' },
    }),
    text('All is paid.'),
  ),
  middleware: [subagents({ agents: { clerk } })],
  store,
});
const session = boss.session('office');

if (task.part === 'answer') {
  const pending = await session.pending();
  for (const { id, hash } of pending) await session.answer(id, { type: 'approve', hash });
  console.log(JSON.stringify({ pending }));
} else {
  const begun = (await store.head('office')) > 0;
  const { status, runId, messages, pending, usage } = begun
    ? await session.resume()
    : await session.run('Please pay the printer.');
  const { sessions } = await store.list();
  const starts = [];
  for (const { sessionId } of sessions)
    starts.push((await store.read(sessionId, 1)).filter(({ type }) => type === 'run_start').length);
  console.log(
    JSON.stringify({
      status,
      runId,
      said: messages.map(textOf),
      pending,
      starts,
      tokens: usage.totalTokens,
      appends,
    }),
  );
}
await opened.close?.();
