/** What commands share: the outside world, the config, and the agent made from it. */
import type { CreateAgentOverrides, CreatedAgent, LoadedConfig } from '@allium/config';
import { type Entry, type SessionInfo, type Store, withStoreTimeout } from 'allium';
import type { Command } from 'commander';
import { untilEnding } from './ending.js';
import { describeError, isConfigError, isDamage, UsageError } from './outcome.js';
import { type Io, note, print, printJson } from './terminal/io.js';
import { withTexts, word } from './terminal/text.js';

export interface Shell {
  readonly io: Io;
  exitCode: number;
  /** From `--config`. */
  configFile: string | undefined;
  /** Output is for programs. */
  json: boolean;
  /** Removes long secrets from text; knows them once a config is loaded. Short ones may be there by chance. */
  redact: (text: string) => string;
  /** Removes all secrets from the text of an error. */
  redactError: (text: string) => string;
}

/** Adds a command to the program. One file in `commands/` is one of them. */
export type AddCommand = (program: Command, shell: Shell) => void;

/** Reads the number of an option. */
export const positive = (text: string): number => wholeFrom(1, text);

/** The same for one that may be 0. */
export const fromZero = (text: string): number => wholeFrom(0, text);

function wholeFrom(least: number, text: string): number {
  const n = Number(text);
  if (text.trim() === '' || !Number.isInteger(n) || n < least)
    throw new UsageError(`Expected a whole number from ${least}, got "${text}".`);
  return n;
}

/** Reads the port of an option. */
export function port(text: string): number {
  const n = Number(text);
  if (!Number.isInteger(n) || n < 1 || n > 65_535)
    throw new UsageError(`Expected a port from 1 to 65535, got "${text}".`);
  return n;
}

/** What a person does first: without a config, nothing else works. */
export function writeAConfig(io: Pick<Io, 'env'>): string {
  return `Write one with: ${programName(io)} init`;
}

/** A command to copy: it begins like this one, with the same config file if one was named. */
export function commandLine({ io, configFile }: Shell, ...words: readonly string[]): string {
  const config = configFile === undefined ? [] : ['--config', configFile];
  const rest = [...config, ...words].map((one) => quoted(word(one)));
  return [programName(io), ...rest].join(' ');
}

/** What to type for this program. If a package manager started it, it may not be on the user's path. */
export function programName(io: Pick<Io, 'env'>): string {
  return managerOf(io)?.run ?? 'allium';
}

/** What to type to install packages. */
export function installLine(io: Pick<Io, 'env'>, packages: readonly string[]): string {
  return [managerOf(io)?.install ?? 'npm install', ...packages].join(' ');
}

function managerOf({ env }: Pick<Io, 'env'>): { run: string; install: string } | undefined {
  const [manager = ''] = (env.npm_config_user_agent ?? '').split('/', 1);
  return MANAGERS[manager];
}

const MANAGERS: Readonly<Record<string, { run: string; install: string }>> = {
  npm: { run: 'npx allium', install: 'npm install' },
  pnpm: { run: 'pnpm exec allium', install: 'pnpm add' },
  yarn: { run: 'yarn allium', install: 'yarn add' },
  bun: { run: 'bunx allium', install: 'bun add' },
};

/** A word as shells take it: in double quotes if they are enough, because those work everywhere. */
export function quoted(word: string): string {
  if (/^[\w.,:/@%+=-]+$/.test(word)) return word;
  return /["$`\\!]/.test(word) ? `'${word.replaceAll("'", `'\\''`)}'` : `"${word}"`;
}

/** A line of output, without the secrets of the config. */
export function tell({ io, redact }: Shell, text: string): void {
  print(io, redact(text));
}

/** The same as JSON. */
export function tellJson({ io, redact }: Shell, value: unknown): void {
  printJson(io, withTexts(value, redact));
}

/** Where an error came from, if ALLIUM_DEBUG is set. */
export function tellStack({ io, redactError }: Shell, error: unknown): void {
  for (let one = error; io.env.ALLIUM_DEBUG && one instanceof Error; one = one.cause)
    note(io, redactError(one.stack ?? ''));
}

export async function openConfig(shell: Shell): Promise<LoadedConfig> {
  const { loadConfig } = await import('@allium/config');
  const { cwd, env } = shell.io;
  const file = shell.configFile;
  const loaded = await loadConfig({ cwd, env, ...(file !== undefined && { file }) });
  shell.redact = (text) => loaded.redactLong(text);
  shell.redactError = (text) => loaded.redact(text);
  return loaded;
}

export interface Opened extends CreatedAgent {
  readonly loaded: LoadedConfig;
}

/** Makes the agent of the config, passes it to `use`, and closes it whatever happens. */
export async function withAgent<T>(
  shell: Shell,
  overrides: CreateAgentOverrides,
  use: (opened: Opened) => Promise<T>,
): Promise<T> {
  const loaded = await openConfig(shell);
  const { createAgent, resolveConfigStore } = await import('@allium/config');
  const own = overrides.store === undefined && loaded.config.store !== undefined;
  const opened = own ? await resolveConfigStore(loaded) : undefined;
  try {
    const store = opened && { store: untilEnding(opened.store, shell.io.signal) };
    const made = await createAgent(loaded, { ...overrides, ...store }).catch((error: unknown) => {
      throw blamingOption(error, overrides);
    });
    try {
      return await use({ ...made, loaded });
    } finally {
      await made.close();
    }
  } finally {
    await opened?.close();
  }
}

/** The model was named on the command line, not in the file that the error would point at. */
function blamingOption(error: unknown, { model }: CreateAgentOverrides): unknown {
  if (typeof model !== 'string' || !isConfigError(error)) return error;
  const [, problem] = (error as Error).message.split('`allium.model`: ', 2);
  return problem !== undefined ? new UsageError(`--model ${model}: ${problem}`) : error;
}

/** The store of the config alone: no model is made, so no key is needed. */
export async function withStore<T>(
  shell: Shell,
  use: (store: Store, loaded: LoadedConfig) => Promise<T>,
): Promise<T> {
  const loaded = await openConfig(shell);
  const { resolveConfigStore } = await import('@allium/config');
  const { store, close } = await resolveConfigStore(loaded);
  try {
    return await use(withStoreTimeout(store), loaded);
  } finally {
    await close();
  }
}

/**
 * The session with that id, or the only one whose id begins so. If none is named, the last one used, except damaged
 * ones: nobody asked for those.
 */
export async function findSession(shell: Shell, store: Store, wanted: string | undefined): Promise<string> {
  // A damaged session exists, too: reading it says what is wrong, and it can be deleted.
  if (wanted !== undefined && (await headOf(store, wanted)) !== 0) return wanted;
  const ids: string[] = [];
  for await (const { sessionId } of allSessions(store)) {
    if (wanted !== undefined) {
      if (sessionId.startsWith(wanted)) ids.push(sessionId);
    } else if ((await headOf(store, sessionId)) !== 'damaged') return sessionId;
  }
  if (ids.length === 1) return ids[0]!;
  if (ids.length > 1)
    throw new UsageError(`Which one? These sessions begin with "${wanted}": ${ids.map(word).join(', ')}`);
  throw new UsageError(
    wanted === undefined
      ? 'There are no sessions yet in the store of this config, or none that can be read.'
      : `There is no session "${wanted}" in the store of this config. See: ${commandLine(shell, 'sessions', 'list')}`,
  );
}

/** How many entries a session has; or that it is damaged. */
async function headOf(store: Store, id: string): Promise<number | 'damaged'> {
  try {
    return await store.head(id);
  } catch (error) {
    if (isDamage(error)) return 'damaged';
    throw error;
  }
}

/** What `read` finds in one of many sessions. A damaged one is reported, and doesn't hide the others. */
export async function unlessDamaged<T>(shell: Shell, read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    note(shell.io, shell.redactError(describeError(error)));
    return undefined;
  }
}

/** Newest first. */
export async function* allSessions(store: Store): AsyncGenerator<SessionInfo> {
  let cursor: string | undefined;
  do {
    const page = await store.list(cursor === undefined ? {} : { cursor });
    yield* page.sessions;
    cursor = page.next;
  } while (cursor !== undefined);
}

/** The state of the last run, from the journal alone. */
export function statusOf(entries: readonly Entry[]): string {
  const last = entries.findLast(({ type }) => type === 'run_start' || type === 'run_end');
  if (last?.type === 'run_end') return last.status;
  const open = new Set<string>();
  for (const entry of entries) {
    if (entry.type === 'request') open.add(entry.request.id);
    else if (entry.type === 'answer') open.delete(entry.requestId);
  }
  if (open.size > 0) return 'suspended';
  return last ? 'open' : 'empty';
}

/** Does the session have a run to resume? */
export async function isOpen(store: Store, sessionId: string): Promise<boolean> {
  return ['open', 'suspended'].includes(statusOf(await store.read(sessionId, 1)));
}
