// A run that waits for an answer in a process of its own. Prints the tool's result when it is done.
import { Agent, textOf, tool } from 'allium';
import { fileStore } from 'allium/stores/file';
import { scriptedModel, text, toolCalls } from 'allium/testing';

const anything = {
  '~standard': {
    version: /** @type {const} */ (1),
    vendor: 'test',
    validate: (/** @type {unknown} */ value) => ({ value }),
  },
};
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: anything,
  toJsonSchema: () => ({ type: 'object' }),
  execute: (args) => `Paid ${/** @type {{ amount: number }} */ (args).amount}.`,
});
const agent = new Agent({
  model: scriptedModel([toolCalls({ name: 'pay', args: { amount: 40 } }), text('Finished.')]),
  tools: [pay],
  store: fileStore({ dir: /** @type {string} */ (process.argv[2]) }),
  middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: { title: 'May I pay?' } }) }],
});
// Keeps the process alive while nothing but the answer is waited for.
const alive = setInterval(() => {}, 1000);
const { messages } = await agent.session('elsewhere').run('Pay', { onRequest: () => new Promise(() => {}) });
clearInterval(alive);
console.log(messages.map(textOf).join('\n'));
