/** `allium doctor`: what is missing before a run can work. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { LoadedConfig, McpServerState } from '@allium/config';
import { type Hazard, type Model, memoryStore, modelName } from 'allium';
import { codeOf, describeError, EXIT, isDamage } from '../outcome.js';
import { type AddCommand, openConfig, type Shell, writeAConfig } from '../shell.js';
import { print, printJson } from '../terminal/io.js';
import { count, short } from '../terminal/text.js';
import { installedVersions } from '../versions.js';

export interface Finding {
  readonly check: 'node' | 'packages' | 'config' | 'keys' | 'model' | 'store' | 'chain' | 'mcp' | 'plugins';
  readonly status: 'ok' | 'warning' | 'problem';
  readonly message: string;
}

export const addDoctor: AddCommand = (program, shell) => {
  program
    .command('doctor')
    .summary('check Node, config, packages, keys, store and chain')
    .description(
      'Checks what a run needs, and says what to do if something is missing. Exit code 1: something is missing.',
    )
    .option('--json', 'print the findings as JSON')
    .action((options: { json?: boolean }) => doctor(shell, options.json === true));
};

async function doctor(shell: Shell, json: boolean): Promise<void> {
  const { io } = shell;
  const findings = (await examine(shell)).map((one) => ({
    ...one,
    message: one.status === 'problem' ? shell.redactError(one.message) : shell.redact(one.message),
  }));
  if (findings.some(({ status }) => status === 'problem')) shell.exitCode = EXIT.failed;
  if (json) return printJson(io, findings);
  const marks = { ok: io.out.green('✓'), warning: io.out.yellow('!'), problem: io.out.red('✗') };
  for (const { check, status, message } of findings)
    print(io, `${marks[status]} ${check.padEnd(9)} ${message.replaceAll('\n', '\n            ')}`);
}

/** Each check stands alone: one that fails hides no other, unless there is nothing to check. */
async function examine(shell: Shell): Promise<Finding[]> {
  const findings: Finding[] = [checkNode(process.versions.node)];
  let loaded: LoadedConfig;
  try {
    loaded = await openConfig(shell);
  } catch (error) {
    const found = problem('config', error);
    const missing = codeOf(error) === 'CONFIG_NOT_FOUND';
    const message = missing ? `${found.message}\n${writeAConfig(shell.io)}` : found.message;
    return [...findings, { ...found, message }];
  }
  findings.push({ check: 'config', status: 'ok', message: loaded.file }, checkPackages(loaded));
  findings.push(...checkKeys(loaded, shell.io.env));
  findings.push(await checkModel(loaded), ...(await checkStore(loaded)), ...(await checkChain(loaded)));
  findings.push(await checkPlugins(loaded));
  return findings;
}

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const fine = major > 20 || (major === 20 && minor >= 19);
  const message = fine ? version : `${version} is too old: Allium needs Node 20.19 or later.`;
  return { check: 'node', status: fine ? 'ok' : 'problem', message };
}

/** Tools import the project's own allium: it must be there, and the version the command line works with. */
function checkPackages({ dir }: LoadedConfig): Finding {
  const own = installedVersions();
  try {
    const require = createRequire(join(dir, 'package.json'));
    const { version } = require('allium/package.json') as { version: string };
    return version === own.allium
      ? { check: 'packages', status: 'ok', message: `allium ${version}` }
      : {
          check: 'packages',
          status: 'warning',
          message: `The project has allium ${version}, the command line works with ${own.allium}. Install the same in both.`,
        };
  } catch {
    const message =
      'The project has no allium: tools and middleware of its own cannot import it. Run: npm install allium';
    return { check: 'packages', status: 'warning', message };
  }
}

/** The variables that the file names. Which key a model needs, the model itself says. */
function checkKeys(
  { variables }: LoadedConfig,
  env: Readonly<Record<string, string | undefined>>,
): Finding[] {
  return variables.map((name) => {
    const set = Boolean(env[name]);
    return {
      check: 'keys',
      status: set ? 'ok' : 'warning',
      message: set ? `${name} is set` : `${name} is not set, its default is used`,
    };
  });
}

async function checkModel(loaded: LoadedConfig): Promise<Finding> {
  const { createAgent, Secret } = await import('@allium/config');
  const { config } = loaded;
  if (config.model === undefined)
    return {
      check: 'model',
      status: 'problem',
      message: 'The config names no model. Write: model = "offline"',
    };
  try {
    // Only the model: everything else has its own check.
    const bare: LoadedConfig = { ...loaded, config: { model: config.model, plugins: config.plugins } };
    const { model, close } = await createAgent(bare, { store: memoryStore() });
    await close();
    const named = config.model instanceof Secret ? config.model.reveal() : config.model;
    return missingProvider(loaded, named) ?? { check: 'model', status: 'ok', message: modelName(model) };
  } catch (error) {
    return problem('model', error);
  }
}

/** Provider packages are only loaded with the first request, which is late to learn that one is missing. */
function missingProvider({ dir }: LoadedConfig, model: unknown): Finding | undefined {
  const name = typeof model === 'string' ? model : (model as { use?: unknown }).use;
  const scheme = typeof name === 'string' ? name.slice(0, name.indexOf('/')) : '';
  if (!['anthropic', 'openai', 'google', 'openai-compatible'].includes(scheme)) return undefined;
  try {
    createRequire(join(dir, 'package.json')).resolve(`@ai-sdk/${scheme}`);
    return undefined;
  } catch {
    return {
      check: 'model',
      status: 'problem',
      message: `The package @ai-sdk/${scheme} is not installed. Run: npm install @ai-sdk/${scheme}`,
    };
  }
}

/** How many sessions to check. */
const LATEST = 100;

async function checkStore(loaded: LoadedConfig): Promise<Finding[]> {
  try {
    const { resolveConfigStore } = await import('@allium/config');
    const { store, close } = await resolveConfigStore(loaded);
    const damaged: Finding[] = [];
    try {
      // A list shows what can be read of a damaged session; its head throws.
      const { sessions } = await store.list({ limit: LATEST });
      for (const { sessionId } of sessions) {
        try {
          await store.head(sessionId);
        } catch (error) {
          if (!isDamage(error)) throw error;
          damaged.push(problem('store', error));
        }
      }
    } finally {
      await close();
    }
    return damaged.length > 0 ? damaged : [{ check: 'store', status: 'ok', message: 'answers' }];
  } catch (error) {
    return [problem('store', error)];
  }
}

/** The chain, and each MCP server in it: its tools, with the fingerprints that `pins` takes. */
async function checkChain(loaded: LoadedConfig): Promise<Finding[]> {
  try {
    const { createAgent } = await import('@allium/config');
    const made = await createAgent(loaded, { model: NO_MODEL, store: memoryStore() });
    const { agent, names, warnings } = made;
    // First, so that explain() knows their tools.
    const states = await Promise.allSettled(made.mcp.map((server) => server.connect()));
    const { hazards, tools } = agent.explain();
    await made.close();
    return [
      {
        check: 'chain',
        status: 'ok',
        message: `${names.join(' → ') || 'no middleware'}; ${count(tools.length, 'tool')}`,
      },
      ...warnings.map((message): Finding => ({ check: 'chain', status: 'warning', message })),
      ...hazards
        .filter((one) => !made.mcp.some(({ name }) => isUntrusted(name)(one)))
        .map(
          ({ message, fix }): Finding => ({
            check: 'chain',
            status: 'warning',
            message: `${message}\n${fix}`,
          }),
        ),
      ...made.mcp.map(({ name }, i) => {
        const finding = serverFinding(states[i]!, hazards.find(isUntrusted(name)));
        if (finding.status !== 'problem' || !isOptional(loaded, name)) return finding;
        const message = `${loaded.redact(finding.message)}\nIt is optional: runs go on without its tools.`;
        return { ...finding, status: 'warning' as const, message };
      }),
    ];
  } catch (error) {
    return [problem('chain', error)];
  }
}

/** What the chain warns of the tools of this server: it is said where they are listed. */
function isUntrusted(server: string | undefined): (hazard: Hazard) => boolean {
  return ({ id, between }) => id === 'untrusted-tools' && between[0] === server;
}

function isOptional({ config }: LoadedConfig, server: string | undefined): boolean {
  return Object.entries(config.mcp ?? {}).some(
    ([name, { optional }]) => optional === true && server === `mcp-${name}`,
  );
}

function serverFinding(state: PromiseSettledResult<McpServerState>, untrusted: Hazard | undefined): Finding {
  if (state.status === 'rejected') return problem('mcp', state.reason);
  const { server, tools, leftOut } = state.value;
  const lines = tools.map(
    ({ name, fingerprint, description }) => `  ${name}  ${fingerprint}  ${short(description, 160)}`,
  );
  const missing = leftOut.map((one) => `  left out: ${one.name} (${one.why})`);
  const advice = untrusted ? [untrusted.fix] : [];
  return {
    check: 'mcp',
    status: leftOut.length > 0 || untrusted ? 'warning' : 'ok',
    message: [`${server}: ${count(tools.length, 'tool')}`, ...lines, ...missing, ...advice].join('\n'),
  };
}

const NO_MODEL: Model = {
  provider: 'none',
  id: 'none',
  // biome-ignore lint/correctness/useYield: nothing is asked here
  async *stream() {
    throw new Error('This model is never asked.');
  },
};

async function checkPlugins({ dir }: LoadedConfig): Promise<Finding> {
  try {
    const { installedPlugins } = await import('@allium/config');
    const plugins = await installedPlugins(dir);
    const list = plugins.map((one) => `${one.package}@${one.version}`).join(', ');
    return { check: 'plugins', status: 'ok', message: list || 'none installed' };
  } catch (error) {
    return problem('plugins', error);
  }
}

function problem(check: Finding['check'], error: unknown): Finding {
  return { check, status: 'problem', message: describeError(error) };
}
