// A process is killed in the middle of its work, and another one continues it. No network, no keys.
//   npm run build && node examples/kill-and-resume.mjs
//
// Without an argument it starts `work`, kills it with SIGKILL while a mail is being sent, and starts `resume`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, terminalText, textOf, tool, toolCallsOf } from 'allium';
import { fileStore } from 'allium/stores/file';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

const [part, folder = ''] = process.argv.slice(2);

const address = tool({
  name: 'address',
  description: 'Finds an address.',
  input: z.object({ of: z.string() }),
  // Looking twice does no harm, so a resume may do it again.
  idempotent: true,
  async execute({ of }) {
    console.log(`  looking for the address of ${of}`);
    return `${of.toLowerCase()}@example.com`;
  },
});
const stamp = tool({
  name: 'stamp',
  description: 'Buys a stamp.',
  input: z.object({}),
  execute() {
    console.log('  buying a stamp');
    return 'One stamp.';
  },
});
const mail = tool({
  name: 'mail',
  description: 'Sends a mail.',
  input: z.object({ to: z.string() }),
  async execute({ to }) {
    console.log(`  mailing ${to} …`);
    // Long enough to be killed meanwhile.
    await sleep(10_000);
    return `Sent to ${to}.`;
  },
});

/** @param {import('allium/testing').Script[]} script */
const session = (...script) =>
  new Agent({
    model: scriptedModel(script),
    tools: [address, stamp, mail],
    store: fileStore({ dir: folder }),
  }).session('letters');

if (part === 'work') {
  await session(
    toolCalls({ name: 'address', args: { of: 'Ann' }, id: 'a' }, { name: 'stamp', id: 'b' }),
    toolCalls({ name: 'mail', args: { to: 'ann@example.com' }, id: 'c' }),
  ).run('Write to Ann.');
} else if (part === 'resume') {
  const { status, turns, messages } = await session(
    text('I do not know whether Ann has got it. I will ask her.'),
  ).resume();
  for (const message of messages) {
    const calls = message.role === 'assistant' ? toolCallsOf(message).map(({ name }) => `<${name}>`) : [];
    const line = `  ${message.id.split('.')[1]} ${message.role}: ${textOf(message)}${calls.join(' ')}`;
    console.log(terminalText(line));
  }
  console.log(`  ${status} after ${turns} turns`);
} else {
  const made = mkdtempSync(join(tmpdir(), 'allium-example-'));
  try {
    console.log('A process works:');
    const worker = spawn(process.execPath, [fileURLToPath(import.meta.url), 'work', made], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface({ input: worker.stdout }).on('line', (line) => {
      console.log(line);
      if (line.includes('mailing')) worker.kill('SIGKILL');
    });
    const [, signal] = await once(worker, 'close');
    console.log(`Killed (${signal}). Another process goes on; address and stamp are not touched again:`);
    const [code] = await once(
      spawn(process.execPath, [fileURLToPath(import.meta.url), 'resume', made], { stdio: 'inherit' }),
      'close',
    );
    process.exitCode = signal === 'SIGKILL' && code === 0 ? 0 : 1;
  } finally {
    rmSync(made, { recursive: true });
  }
}
