/** `allium run`: one question, one answer. */
import type { Middleware } from 'allium';
import { warnOfOpen } from '../inbox.js';
import { exitCodes, UsageError } from '../outcome.js';
import { play } from '../play.js';
import { type AddCommand, programName, type Shell, withAgent } from '../shell.js';
import { readAll } from '../terminal/io.js';

interface Options {
  readonly session?: string;
  readonly model?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly yes?: boolean;
  readonly record?: string;
}

export const addRun: AddCommand = (program, shell) => {
  program
    .command('run')
    .summary('ask one thing and stream the answer')
    .description(
      'Asks the agent one thing. The answer goes to stdout, everything about it to stderr.\n' +
        'On a terminal the answer is streamed; in a pipe it is written when it is final.',
    )
    .argument('[prompt...]', 'what to ask; without it, stdin is read; a - stands for stdin')
    .option('-s, --session <id>', 'continue this session, or start one with this name')
    .option('-m, --model <name>', 'use this model instead of the one in the config')
    .option('-q, --quiet', 'print only the answer')
    .option('-y, --yes', 'approve every tool call without asking')
    .option('--json', 'print events, one JSON object per line')
    .option('--record <file>', 'write a cassette of the model and tool calls, for `allium replay`')
    .addHelpText(
      'after',
      `
Examples:
  allium run "What is the weather in Bergen?"
  git diff | allium run "Review this:" -
  allium run --session ann "And tomorrow?"
  allium run --json "Hi" | jq -r 'select(.type == "tool_execution_start").toolCall.name'

Without a terminal nobody can be asked: a run that needs an approval is suspended (exit code 5), and
\`allium approve\` continues it. With --yes every call is approved.

${exitCodes()}`,
    )
    .action((words: string[], options: Options) => runOnce(shell, words, options));
};

async function runOnce(shell: Shell, words: readonly string[], options: Options): Promise<void> {
  const input = await promptOf(shell, words);
  const overrides = {
    ...(options.model !== undefined && { model: options.model }),
    ...(options.record !== undefined && { middleware: [await recorder(options.record)] }),
  };
  await withAgent(shell, overrides, async ({ agent, loaded }) => {
    const { store = 'memory' } = loaded.config;
    const forgets = 'the store of this config keeps nothing. Pass --yes, or set store = "file".';
    if (options.session !== undefined) await warnOfOpen(shell, agent, options.session);
    await play(shell, agent, { ...options, ...(store === 'memory' && { forgets }) }, (run) =>
      options.session === undefined
        ? agent.stream(input, run)
        : agent.session(options.session).stream(input, run),
    );
  });
}

async function recorder(to: string): Promise<Middleware> {
  const { record } = await import('allium/middleware/record');
  return record({ to });
}

/** The words of the command line; stdin if there are none, or in place of a dash. */
async function promptOf({ io }: Shell, words: readonly string[]): Promise<string> {
  const reads = words.length === 0 || words.includes('-');
  if (words.length === 0 && io.stdin.isTTY)
    throw new UsageError(
      `Ask something: ${programName(io)} run "…", or pipe it in: echo "…" | ${programName(io)} run`,
    );
  const piped = reads ? (await readAll(io)).trim() : '';
  const asked = words.filter((word) => word !== '-').join(' ');
  const prompt = [asked, piped].filter((text) => text !== '').join('\n\n');
  if (prompt.trim() === '') throw new UsageError('The prompt is empty. Write what you want to ask.');
  return prompt;
}
