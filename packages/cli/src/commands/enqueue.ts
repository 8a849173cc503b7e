/** `allium enqueue`: a job for the workers. */
import { connectionOf, type FleetOptions, loadFleet, withFleetOptions } from '../fleet.js';
import { EXIT, exitCodeOf, UsageError } from '../outcome.js';
import { type AddCommand, fromZero, openConfig, type Shell, tell, tellJson } from '../shell.js';
import { note } from '../terminal/io.js';

interface Options extends FleetOptions {
  readonly agent?: string;
  readonly session?: string;
  readonly tenant?: string;
  readonly priority?: number;
  readonly delay?: number;
  readonly key?: string;
  readonly wait?: boolean;
  readonly json?: boolean;
}

export const addEnqueue: AddCommand = (program, shell) => {
  withFleetOptions(program.command('enqueue'))
    .summary('give the workers a job')
    .description('Puts a message into the queue of `allium worker`, and prints the id of its run.')
    .argument('<prompt...>', 'what to ask')
    .option('-a, --agent <name>', 'which agent; by default the name in the config')
    .option('-s, --session <id>', 'continue this session, or start one with this name')
    .option('--tenant <name>', 'whose session it is')
    .option('--priority <number>', 'lower is sooner', fromZero)
    .option('--delay <ms>', 'begin after this many milliseconds', fromZero)
    .option('--key <text>', 'a second job with this key is not made')
    .option('-w, --wait', 'wait for the end and print the answer')
    .option('--json', 'print as JSON: the ids, or with --wait how it ended')
    .action((words: string[], options: Options) => enqueue(shell, words.join(' '), options));
};

async function enqueue(shell: Shell, input: string, options: Options): Promise<void> {
  if (input.trim() === '') throw new UsageError('The prompt is empty. Write what you want to ask.');
  const connection = connectionOf(shell, options);
  const { createQueue } = await loadFleet(shell);
  const { agent = await configuredName(shell), session, tenant, priority, delay, key, wait, json } = options;
  if (wait && delay !== undefined) throw new UsageError('--wait and --delay cannot be combined.');
  const queue = createQueue(connection);
  try {
    const job = await orEnded(
      shell.io.signal,
      queue.enqueue(agent, input, {
        ...(session !== undefined && { sessionId: session }),
        ...(tenant !== undefined && { tenant }),
        ...(priority !== undefined && { priority }),
        ...(delay !== undefined && { delayMs: delay }),
        ...(key !== undefined && { idempotencyKey: key }),
      }),
    );
    if (!wait) return json ? tellJson(shell, job) : tell(shell, job.runId);
    const outcome = await queue.finished(job.runId, { signal: shell.io.signal });
    const { status, text, error } = outcome;
    shell.exitCode = status === 'failed' ? EXIT.failed : exitCodeOf(status);
    if (json) return tellJson(shell, outcome);
    if (text) tell(shell, text);
    if (status !== 'done') note(shell.io, shell.redactError(`${status}${error ? `: ${error.message}` : ''}`));
  } finally {
    await queue.close();
  }
}

/** A process that was told to end doesn't wait for Redis. */
function orEnded<T>(signal: AbortSignal, wait: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    wait.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

async function configuredName(shell: Shell): Promise<string> {
  const { config } = await openConfig(shell);
  return typeof config.name === 'string' ? config.name : 'agent';
}
