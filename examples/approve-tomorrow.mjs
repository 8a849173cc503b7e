// A question that is answered tomorrow, by somebody else, in another process. No network, no keys.
//   npm run build && node examples/approve-tomorrow.mjs
//
// Without an argument it plays all three parts one after the other, each in its own process:
//   evening   the agent wants to pay, the policy asks, the run is suspended and the process ends
//   office    somebody looks at what is pending and approves a smaller amount
//   morning   the run continues where it stopped

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, terminalText, textOf, tool } from 'allium';
import { approval, ask, deny, policyFor } from 'allium/middleware/approval';
import { fileStore } from 'allium/stores/file';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

const [part, folder = ''] = process.argv.slice(2);

const balance = tool({
  name: 'balance',
  description: 'What is in the account.',
  input: z.object({}),
  idempotent: true,
  execute: () => '2,300 euros',
});
const pay = tool({
  name: 'pay',
  description: 'Pays somebody.',
  input: z.object({ to: z.string(), euros: z.number().positive() }),
  execute: ({ to, euros }) => `Paid ${euros} euros to ${to}.`,
});

// Up to 100 euros nobody is asked, above 1000 it is refused, in between a person decides.
const policy = approval({
  policy: {
    balance: 'allow',
    ...policyFor(pay, ({ args }) => {
      if (args.euros > 1000) return deny('More than 1000 euros are never paid.');
      return args.euros > 100 ? ask({ why: 'more than 100 euros' }) : 'allow';
    }),
  },
});

/** @param {import('allium/testing').Script[]} script */
const session = (...script) =>
  new Agent({
    model: scriptedModel(script),
    tools: [balance, pay],
    middleware: [policy],
    store: fileStore({ dir: folder }),
  }).session('invoices');

if (part === 'evening') {
  const { status, pending } = await session(
    toolCalls(
      { name: 'balance', text: 'I look at the account and pay the three invoices.' },
      { name: 'pay', args: { to: 'the baker', euros: 40 } },
      { name: 'pay', args: { to: 'the printer', euros: 900 } },
      { name: 'pay', args: { to: 'the prince', euros: 5000 } },
    ),
  ).run('Please pay the invoices.');
  console.log(`  ${status}: ${pending.length} question, and nothing has run yet. Good night.`);
} else if (part === 'office') {
  const open = session();
  for (const { id, hash, title, arguments: args, details } of await open.pending()) {
    // The person must see all of what they approve: nothing in it may control the terminal or hide.
    console.log(terminalText(`  ${title} ${args} (${JSON.stringify(details)})`));
    // The hash says which arguments were shown: an answer for others would be refused.
    await open.answer(id, { type: 'edit', args: { to: 'the printer', euros: 450 }, hash });
    console.log('  Half of it, for now.');
  }
} else if (part === 'morning') {
  const { status, messages } = await session(text('The baker and half of the printer are paid.')).resume();
  for (const message of messages)
    if (message.role === 'tool') console.log(terminalText(`  ${message.toolName}: ${textOf(message)}`));
  console.log(terminalText(`  agent: ${textOf(/** @type {import('allium').Message} */ (messages.at(-1)))}`));
  console.log(`  ${status}`);
} else {
  const made = mkdtempSync(join(tmpdir(), 'allium-example-'));
  try {
    for (const next of ['evening', 'office', 'morning']) {
      console.log(next);
      const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), next, made], {
        stdio: 'inherit',
      });
      if (status !== 0) process.exitCode = 1;
    }
  } finally {
    rmSync(made, { recursive: true });
  }
}
