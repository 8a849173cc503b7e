/** `allium worker`: runs the agent of the config for jobs of a queue. */
import { once } from 'node:events';
import type { AgentWorker } from '@allium/worker';
import { connectionOf, type FleetOptions, loadFleet, withFleetOptions } from '../fleet.js';
import { UsageError } from '../outcome.js';
import { type AddCommand, openConfig, port, positive, type Shell, withAgent } from '../shell.js';
import { note, print } from '../terminal/io.js';

interface Options extends FleetOptions {
  readonly concurrency: number;
  readonly port?: number;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

export const addWorker: AddCommand = (program, shell) => {
  withFleetOptions(program.command('worker'))
    .summary('take jobs of a queue and run them')
    .description(
      'Runs the agent of the config for every job in the queue. Start as many as you like: they share the work, and take over ' +
        'what another one left behind. SIGTERM lets its runs end, or hands them over.',
    )
    .option('-n, --concurrency <number>', 'jobs at a time', positive, 10)
    .option('--port <number>', 'serve /healthz, /readyz and /metrics there', port)
    .option('-q, --quiet', 'do not report every job')
    .option('--json', 'print what happens to jobs, one JSON object per line')
    .action((options: Options) => work(shell, options));
};

async function work(shell: Shell, options: Options): Promise<void> {
  const { io } = shell;
  const connection = connectionOf(shell, options);
  const { createWorker } = await loadFleet(shell);
  const loaded = await openConfig(shell);
  if ((loaded.config.store ?? 'memory') === 'memory')
    throw new UsageError(
      'Workers need a store that all of them share, such as Postgres. The config has none.',
    );
  const { resolveConfigStore } = await import('@allium/config');
  const { store, close } = await resolveConfigStore(loaded);
  try {
    await withAgent(shell, { store }, async ({ agent }) => {
      const tell = (text: string): void => note(io, shell.redact(text));
      let connected = true;
      const worker = createWorker({
        ...connection,
        agents: { [agent.name]: agent },
        store,
        concurrency: options.concurrency,
        // The signals of the command line end it.
        drainOn: [],
        onConnection({ state, address }) {
          connected = state === 'back';
          if (connected) tell(`Redis at ${address} answers again.`);
          else tell(`Redis at ${address} does not answer. Trying again until it does.`);
        },
        // Every attempt to connect would report the same problem.
        onError: (error) => {
          if (connected) tell(`error: ${error instanceof Error ? error.message : String(error)}`);
        },
        onEvent({ type, runId, sessionId, outcome, error: thrown }) {
          const error = thrown === undefined ? undefined : reasonOf(thrown);
          if (options.json)
            return print(io, shell.redact(JSON.stringify({ type, runId, sessionId, outcome, error })));
          if (options.quiet) return;
          tell(`${type} ${runId}${outcome ? ` ${outcome.status}` : ''}${error ? `: ${error.message}` : ''}`);
        },
      });
      const server =
        options.port === undefined
          ? undefined
          : await serve(worker, options.port).catch(async (error) => {
              await worker.close();
              throw error;
            });
      const ready = worker.ready().then(() => {
        if (!io.signal.aborted)
          tell(`Worker ${worker.id} takes jobs for "${agent.name}", ${options.concurrency} at a time.`);
      });
      // It may be told to end before Redis has ever answered.
      await Promise.race([ready, ended(io.signal)]);
      ready.catch(() => undefined);
      await ended(io.signal);
      tell('Leaving: runs may end, or are handed over.');
      await worker.close();
      server?.close();
    });
  } finally {
    await close();
  }
}

function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

async function serve(worker: AgentWorker, port: number) {
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    const send = (ok: boolean, text: string): void => {
      response.writeHead(ok ? 200 : 503, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
    };
    const answer = async (): Promise<void> => {
      const { live, ready, down } = await worker.health();
      if (request.url === '/healthz') send(live, live ? 'ok\n' : 'not running\n');
      else if (request.url === '/readyz') send(ready, ready ? 'ok\n' : `not ready ${down.join(' ')}\n`);
      else if (request.url === '/metrics') send(true, await worker.prometheus());
      else response.writeHead(404).end();
    };
    answer().catch(() => send(false, 'failed\n'));
  });
  server.listen(port);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new UsageError(`Cannot serve on port ${port}: ${(error as Error).message}`);
  }
  return server;
}

function reasonOf(error: unknown): { readonly code?: string; readonly message: string } {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return {
    ...(typeof code === 'string' && { code }),
    message: typeof message === 'string' ? message : String(error),
  };
}
