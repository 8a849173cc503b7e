// A first look: a scripted agent with two tools and three middleware, streamed to the terminal. No network, no keys.
//   npm start

import { Agent, defineMiddleware, textOf, tool, window } from 'allium';
import { maxTurns, retry } from 'allium/middleware';
import { chunks, failWith, scriptedModel, toolCalls } from 'allium/testing';
import { z } from 'zod';

const forecast = tool({
  name: 'forecast',
  description: 'The weather of the next days in a town.',
  input: z.object({ town: z.string(), days: z.number().int().positive() }),
  idempotent: true,
  execute: ({ town, days }) => ({ town, days, sky: 'rain, then more rain', celsius: [9, 12] }),
});

const findHost = tool({
  name: 'find_host',
  description: 'Someone who lives in a town and shows people around.',
  input: z.object({ town: z.string() }),
  idempotent: true,
  execute: ({ town }) => `Ingrid from ${town}, ingrid@example.com`,
});

// Our own middleware: no e-mail address comes from a tool or leaves the model, however its text is cut into pieces.
const noEmail = defineMiddleware({
  name: 'no-email',
  guard: {
    on: ['output', 'tool-result'],
    hold: window(64),
    find: (text) =>
      [...text.matchAll(/[\w.]{1,30}@[\w.]{1,30}\w/g)].map(({ index, 0: { length } }) => ({
        start: index,
        end: index + length,
      })),
    replacement: '[address withheld]',
  },
});

// What the "model" says: its first answer breaks off and is asked for again, the last one makes up an address.
const model = scriptedModel([
  failWith(
    Object.assign(new Error('the provider is overloaded'), { status: 529 }),
    ...words('Bergen it is! I begin with the weather of the next two days, and then I look for some'),
  ),
  toolCalls(
    {
      name: 'forecast',
      args: { town: 'Bergen', days: 2 },
      text: 'I look at the weather, and for someone who lives there.',
    },
    { name: 'find_host', args: { town: 'Bergen' } },
  ),
  chunks(
    ...words('Pack a raincoat: nine to twelve degrees, and rain. '),
    ...words('Ingrid shows you around; write to guides@bergen.example and say when you arrive.'),
  ),
]);

const agent = new Agent({
  model,
  tools: [forecast, findHost],
  middleware: [maxTurns({ turns: 5 }), retry({ minDelayMs: 300, jitter: 'none' }), noEmail],
});

// `npm start | head` closes the pipe early: that is an end like any other.
process.stdout.on('error', (error) => process.exit('code' in error && error.code === 'EPIPE' ? 0 : 1));

console.log(heading('The plan'));
console.log(String(agent.explain()));

const question = 'Two days in Bergen: what do I pack, and whom do I meet?';
console.log(heading('The run'));
console.log(`you    ${question}`);

const stream = agent.stream(question);
let open = false;
for await (const event of stream) {
  switch (event.type) {
    case 'message_update':
      if (event.delta.type !== 'text') break;
      if (!open) process.stdout.write('agent  ');
      open = true;
      process.stdout.write(event.delta.text);
      if (process.stdout.isTTY) await new Promise((resolve) => setTimeout(resolve, 30));
      break;
    case 'message_reset':
      line('       (what the agent said last is taken back)');
      break;
    case 'message_end':
      line();
      break;
    case 'custom':
      if (event.name === 'retry') line(`retry  ${describe(event.data)}`);
      break;
    case 'tool_execution_start':
      line(`tool   ${event.toolCall.name} ${event.toolCall.arguments}`);
      break;
    case 'tool_execution_end':
      if (event.message) line(`       ${event.toolCall.name} says: ${textOf(event.message)}`);
      break;
  }
}

const { status, turns, usage, changes } = await stream.result;
console.log(heading('The end'));
console.log(
  `${status} after ${turns} turns and ${usage.totalTokens} tokens. What middleware did on the way:`,
);
for (const { turn, by, what } of changes) console.log(`  turn ${turn}: ${by} – ${what}`);

/** Ends the text that is being written, if any; then writes a line, if there is one. */
function line(text = '') {
  if (open) process.stdout.write('\n');
  if (text) console.log(text);
  open = false;
}

function heading(/** @type {string} */ title) {
  return `\n── ${title} ${'─'.repeat(60 - title.length)}\n`;
}

function words(/** @type {string} */ text) {
  return text.split(/(?<= )/);
}

function describe(/** @type {any} */ { error, delayMs }) {
  return `${error}: again in ${delayMs} ms`;
}
