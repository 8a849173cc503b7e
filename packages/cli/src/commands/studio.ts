/** `allium studio`: a web page over the store of the config. */
import type { LoadedConfig } from '@allium/config';
import type * as StudioPackage from '@allium/studio';
import { type Agent, withStoreTimeout } from 'allium';
import { describeError, UsageError } from '../outcome.js';
import { type AddCommand, installLine, openConfig, port, type Shell } from '../shell.js';
import { note, print, printJson } from '../terminal/io.js';

interface Options {
  readonly port?: number;
  readonly allowAnswers?: boolean;
  readonly demo?: boolean;
  readonly json?: boolean;
}

export const addStudio: AddCommand = (program, shell) => {
  program
    .command('studio')
    .summary('look at runs in the browser')
    .description(
      'Serves a web page over the store of the config, on this machine only, and prints its address: runs as they ' +
        'happen, what the model received, the onion of middleware, approvals, money. It is read-only ' +
        'unless --allow-answers is given.',
    )
    .option('--port <number>', 'listen there; otherwise on 4280, or on any free port if that is taken', port)
    .option('--allow-answers', 'let people answer questions of runs, and talk to the agent')
    .option('--demo', 'show recorded runs instead: needs neither config nor keys')
    .option('--json', 'print the address as JSON')
    .action((options: Options) => (options.demo ? demo(shell, options) : studio(shell, options)));
};

async function studio(shell: Shell, options: Options): Promise<void> {
  const { io } = shell;
  const { startStudio } = await loadStudio(shell);
  const loaded = await openConfig(shell);
  const { resolveConfigStore } = await import('@allium/config');
  const { store, close } = await resolveConfigStore(loaded);
  try {
    if ((loaded.config.store ?? 'memory') === 'memory')
      note(
        io,
        io.err.yellow(
          'warning: the config keeps sessions in memory, so runs of other processes cannot be seen.',
        ),
      );
    const made = await agentOf(shell, loaded, store);
    const served = await startStudio({
      store: withStoreTimeout(store),
      storeName: storeName(loaded),
      ...('agent' in made ? { agents: [made.agent] } : { problem: made.problem }),
      ...(options.port !== undefined && { port: options.port }),
      allowAnswers: options.allowAnswers === true,
    });
    await untilSignal(shell, served, options);
    if ('agent' in made) await made.close();
  } finally {
    await close();
  }
}

async function demo(shell: Shell, options: Options): Promise<void> {
  const { startDemo } = await loadStudio(shell);
  await untilSignal(
    shell,
    await startDemo(options.port !== undefined ? { port: options.port } : {}),
    options,
  );
}

/** Without a key there is no model, but the runs can still be seen. */
async function agentOf(
  shell: Shell,
  loaded: LoadedConfig,
  store: Parameters<typeof withStoreTimeout>[0],
): Promise<{ agent: Agent; close(): Promise<void> } | { problem: string }> {
  try {
    const { createAgent } = await import('@allium/config');
    return await createAgent(loaded, { store });
  } catch (error) {
    const problem = shell.redactError(describeError(error));
    note(shell.io, shell.io.err.yellow(`warning: runs are shown, but the agent cannot be made: ${problem}`));
    return { problem };
  }
}

function storeName({ config: { store } }: LoadedConfig): string {
  if (typeof store === 'string') return store;
  const use = (store as { use?: unknown } | undefined)?.use;
  return typeof use === 'string' ? use : 'memory';
}

async function untilSignal(
  { io }: Shell,
  served: StudioPackage.Studio,
  { json = false }: Options,
): Promise<void> {
  try {
    if (json) printJson(io, { url: served.url }, 0);
    else print(io, served.url);
    note(io, io.err.dim('Open this address in a browser on this machine. Ctrl-C ends it.'));
    if (!io.signal.aborted)
      await new Promise<void>((resolve) =>
        io.signal.addEventListener('abort', () => resolve(), { once: true }),
      );
  } finally {
    await served.close();
  }
}

/** Loaded only by this command, so that others need not install it. */
async function loadStudio({ io }: Shell): Promise<typeof StudioPackage> {
  try {
    return await import('@allium/studio');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError(`This needs @allium/studio. Install it: ${installLine(io, ['@allium/studio'])}`);
  }
}
