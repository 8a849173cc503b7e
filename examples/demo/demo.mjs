// `npm start`: an agent from a config file, offline. A tool fails, is retried, fails again and is called again; an e-mail
// address is redacted while it streams, a call needs approval, and the second run comes from the cache.
//   npm start                     watch it
//   npm start -- --json FILE      also write the events, one JSON object per line

import { appendFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { approveAll, askPerson, follow, jsonView, liveView, makeIo, print } from '@allium/cli';
import { createAgent, loadConfig } from '@allium/config';

const QUESTION =
  'What is the forecast for Bergen for the next 2 days, who is a guide in Bergen, and book a room in Bergen for 2 nights.';

const { stdin, stdout, env } = process;
// Answers and status lines go to one stream: the demo is about what happens on the way.
const io = makeIo({ stdin, stdout, stderr: stdout, env, cwd: process.cwd() });
const values = readOptions();
const file = jsonView((line) => {
  if (values.json !== undefined) appendFileSync(values.json, line);
});

// `npm start | head` closes the pipe early, which is a normal end.
stdout.on('error', (error) => process.exit('code' in error && error.code === 'EPIPE' ? 0 : 1));

const loaded = await loadConfig({ file: fileURLToPath(new URL('allium.toml', import.meta.url)) });
const { agent, close } = await createAgent(loaded);

heading('The plan');
print(io, `from ${here(loaded.file)}\n`);
print(io, String(agent.explain()));

const ON_ITS_OWN = approveAll('automatically: there is no terminal to ask in');
/**
 * The answers that were given, by the hash of the call: nobody is asked about the same call twice.
 * @type {Map<string, import('@allium/cli').Answerer>}
 */
const decided = new Map();
/** @type {import('allium').RunResult[]} */
const results = [];
for (const title of ['The first run', 'The same question again']) {
  heading(title);
  print(io, `you: ${QUESTION}\n`);
  results.push(await run());
}
await close();

heading('What it came to');
for (const [index, { status, turns, usage, costUsd }] of results.entries())
  print(
    io,
    `run ${index + 1}: ${status} after ${turns} turns, ${usage.totalTokens} tokens, $${costUsd?.toFixed(5)}`,
  );
const total = results.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
print(io, `in all: $${total.toFixed(5)}, at a price that is made up: the offline model costs nothing`);

heading('Where to look next');
const config = `--config ${here(loaded.file)}`;
for (const { status, sessionId } of results)
  if (status === 'suspended')
    print(io, `A call still waits for you: npx allium approve ${sessionId} ${config}\n`);
print(
  io,
  `The data is in ${here(join(loaded.dir, '.allium'))}. Look at it, or talk to the agent:

  npx allium trace ${config}
  npx allium sessions ${config}
  npx allium studio ${config}
  npx allium chat ${config}

The agent is ${here(loaded.file)}. Its guard "pii" is one of @allium/guardrails.
README.md goes from here to a middleware of your own, docs/guide/command-line.md has every command.`,
);

/** One run, shown as it goes. */
async function run() {
  const screen = liveView(io, { stream: true });
  const both = {
    ...screen,
    event(
      /** @type {import('allium').AgentEvent} */ event,
      /** @type {number | undefined} */ at,
      /** @type {boolean | undefined} */ asked,
    ) {
      screen.event(event, at, asked);
      file.event(event);
    },
    request: file.request,
    answer(
      /** @type {import('allium').PendingRequest} */ request,
      /** @type {import('allium').Decision} */ decision,
    ) {
      screen.answer?.(request, decision);
      file.answer(request, decision);
    },
  };
  const { result, error } = await follow((onRequest) => agent.stream(QUESTION, { onRequest }), both, {
    ask,
    // Slow enough to watch on a terminal.
    paceMs: stdout.isTTY ? 25 : 0,
  });
  if (!result) throw error;
  return result;
}

/** @type {import('@allium/cli').Asker} */
async function ask(request) {
  const answer = decided.get(request.hash) ?? (io.interactive ? askPerson : ON_ITS_OWN);
  const decision = await answer(io, request);
  if (decision)
    decided.set(request.hash, async () => {
      print(io, `  ? the same call as before: ${decision.type}`);
      return decision;
    });
  return decision;
}

/** The words after `npm start --`. Errors have no stack: a wrong word isn't a bug. */
function readOptions() {
  try {
    const { values } = parseArgs({ options: { json: { type: 'string' } } });
    if (values.json !== undefined) writeFileSync(values.json, '');
    return values;
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    console.error('usage: npm start [-- --json FILE]');
    process.exit(2);
  }
}

function heading(/** @type {string} */ title) {
  print(io, `\n── ${title} ${'─'.repeat(60 - title.length)}\n`);
}

/** A path as one would type it. */
function here(/** @type {string} */ path) {
  return relative(process.cwd(), path) || '.';
}
