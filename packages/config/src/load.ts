/** Finds, reads and checks a config file. */
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { checkKeys, closestName } from 'allium/kit';
import { checkOptionsSchema } from 'allium/registry';
import { parse as parseToml, TomlError } from 'smol-toml';
import { ConfigError } from './config-error.js';
import { interpolate, isTable, variablesIn } from './interpolate.js';
import { type KeyPath, locator } from './locate.js';
import { importNamed, keyText } from './modules.js';
import { redactor, secretsIn } from './redact.js';
import { reveal } from './reveal.js';
import { checkingSchema } from './schema.js';
import { LONG, Secret } from './secret.js';
import type { Config, ConfigSource, LoadConfigOptions, LoadedConfig } from './types.js';

/** A folder may have only one of these. */
export const CONFIG_FILES = ['allium.toml', 'allium.json', 'allium.config.ts', 'allium.config.mjs'] as const;

/**
 * Reads `allium.toml`, `allium.json` or `allium.config.ts` of this folder or the nearest one above that has one.
 *
 * @example
 * const loaded = await loadConfig();
 * const { agent, close } = await createAgent(loaded);
 */
export async function loadConfig(options: LoadConfigOptions = {}): Promise<LoadedConfig> {
  checkKeys('loadConfig()', options, ['cwd', 'file', 'env']);
  const { cwd = process.cwd(), env = process.env } = options;
  const file = options.file === undefined ? search(resolve(cwd)) : resolve(cwd, options.file);
  const { source, value } = await read(file);
  const raw = underAllium(file, source, value);
  const config = (
    source.format === 'module'
      ? raw
      : interpolate(raw, env, ({ path, message }) => {
          throw new ConfigError('CONFIG_VARIABLE', message, place(file, source, ['allium', ...path]));
        })
  ) as Config;
  const variables = source.format === 'module' ? [] : variablesIn([raw]);
  const secrets = secretsIn(config);
  const redact = redactor(secrets);
  const redactLong = redactor(secrets.filter((secret) => secret.length >= LONG));
  await check(file, source, config, redact);
  return { file, dir: dirname(file), config, source, variables, redact, redactLong };
}

/** Types what a config module exports. */
export function defineConfig(config: Config): Config {
  return config;
}

function search(from: string): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const found = CONFIG_FILES.filter((name) => existsSync(join(dir, name)));
    if (found.length > 1)
      throw new ConfigError(
        'CONFIG_INVALID',
        `${dir} has ${found.join(' and ')}, and only one can count. Keep one of them.`,
      );
    if (found[0]) {
      const file = join(dir, found[0]);
      if (dir !== from) refuseStrangers(file);
      return file;
    }
    if (dirname(dir) === dir) break;
  }
  throw new ConfigError(
    'CONFIG_NOT_FOUND',
    `There is no ${CONFIG_FILES.slice(0, -1).join(', ')} or ${CONFIG_FILES.at(-1)} in ${from} or a folder above.`,
  );
}

/**
 * A config brings code: modules, tools, plugins. In the current folder that is intended. One that was merely found in
 * a folder above, perhaps in `/tmp`, must belong to the user, or to root, who could do anything anyway.
 */
function refuseStrangers(file: string): void {
  const own = process.geteuid?.();
  if (own === undefined) return; // Windows has no such owners.
  // Also checks the owner of a link, who chose the file.
  const stranger = [lstatSync(file).uid, statSync(file).uid].find((owner) => owner !== own && owner !== 0);
  if (stranger === undefined) return;
  throw new ConfigError(
    'CONFIG_UNTRUSTED',
    `This config was found in a folder above, and belongs to another user (uid ${stranger}, you are ${own}), so its code is not run. If you trust it, name it (--config ${file}, or \`file\` for loadConfig()) or make it yours (chown).`,
    { file, data: { owner: stranger } },
  );
}

async function read(file: string): Promise<{ source: ConfigSource; value: unknown }> {
  if (!existsSync(file)) throw new ConfigError('CONFIG_NOT_FOUND', `There is no file ${file}.`);
  const text = textOf(file);
  const name = basename(file);
  if (/\.(ts|mts|mjs|js)$/.test(name)) {
    const module = await importNamed(file);
    return { source: { format: 'module', text, lineOf: () => undefined }, value: module.default };
  }
  if (name.endsWith('.json'))
    return { value: json(file, text), source: { format: 'json', text, lineOf: locator(text, 'json') } };
  if (name.endsWith('.toml'))
    return { value: toml(file, text), source: { format: 'toml', text, lineOf: locator(text, 'toml') } };
  throw new ConfigError(
    'CONFIG_INVALID',
    `Expected a file that ends with .toml, .json, .ts or .mjs, got ${file}.`,
  );
}

function textOf(file: string): string {
  try {
    // It also takes off a byte order mark.
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem =
      code === 'EISDIR'
        ? 'This is a folder. Name the file in it.'
        : code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
          ? 'It is not UTF-8. Save it in that encoding.'
          : `It cannot be read: ${message}.`;
    throw new ConfigError('CONFIG_INVALID', problem, { file, cause: error });
  }
}

function toml(file: string, text: string): unknown {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [message = ''] = error.message.split('\n');
    throw new ConfigError(
      'CONFIG_INVALID',
      `${message.replace(/^Invalid TOML document: /, 'This is not TOML: ')}.`,
      {
        file,
        line: error.line,
      },
    );
  }
}

function json(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    const line = lineOfMistake(text, message);
    throw new ConfigError('CONFIG_INVALID', `This is not JSON: ${message}.`, { file, line });
  }
}

/**
 * Some messages have no position. Then it is the end, or the first line after which the parser stumbles over that
 * token.
 */
function lineOfMistake(text: string, message: string): number {
  const at = /position (\d+)/.exec(message)?.[1];
  if (at !== undefined) return text.slice(0, Number(at)).split('\n').length;
  const lines = text.trimEnd().split(/(?<=\n)/);
  const [token = ''] = message.split(', ', 1);
  const stumbles = (end: number) => {
    try {
      JSON.parse(lines.slice(0, end).join(''));
    } catch (error) {
      return (error as Error).message.startsWith(token);
    }
    return false;
  };
  const first = lines.findIndex((_, index) => stumbles(index + 1));
  return message.startsWith('Unexpected token') && first !== -1 ? first + 1 : lines.length;
}

/** Files have one table `allium`, so that a mistake in a heading is noticed; a module exports its contents. */
function underAllium(file: string, source: ConfigSource, value: unknown): unknown {
  if (source.format === 'module') {
    if (isTable(value)) return value;
    throw new ConfigError('CONFIG_INVALID', 'Expected `export default defineConfig({ … })`.', { file });
  }
  if (!isTable(value)) throw new ConfigError('CONFIG_INVALID', 'Expected a table `allium`.', { file });
  const stranger = Object.keys(value).find((key) => key !== 'allium' && key !== '$schema');
  if (stranger !== undefined) {
    const where = place(file, source, [stranger]);
    throw new ConfigError('CONFIG_INVALID', adviceFor(stranger, value[stranger]), where);
  }
  return value.allium ?? {};
}

/** `[middleware]` lacks a heading, `[spine.middleware]` has another program's. */
function adviceFor(stranger: string, value: unknown): string {
  const known = Object.keys((checkingSchema(false) as { properties: object }).properties);
  if (closestName(stranger, ['allium'])) return `Unknown key \`${stranger}\`. Did you mean \`allium\`?`;
  const inside = isTable(value) && !known.includes(stranger) ? Object.keys(value) : [];
  const own = inside.filter((key) => known.includes(key)).map((key) => `\`allium.${key}\``);
  if (own.length === 0) return `Everything stands under \`allium\`: write \`allium.${stranger}\`.`;
  return `Unknown key \`${stranger}\`. Everything stands under \`allium\`: write ${own.join(', ')}.`;
}

/** Structure, types and ranges. Names are looked up when the agent is made. */
async function check(
  file: string,
  source: ConfigSource,
  config: Config,
  redact: (text: string) => string,
): Promise<void> {
  if (!isTable(config as unknown))
    throw new ConfigError(
      'CONFIG_INVALID',
      'Expected `allium` to be a table.',
      place(file, source, ['allium']),
    );
  const schema = checkingSchema(source.format === 'module');
  const { issues } = await checkOptionsSchema(schema, reveal(config, schema));
  if (issues) {
    const [{ path, message }] = issues;
    const where = place(file, source, ['allium', ...path]);
    // As `new Agent({ middleware })` takes it.
    const isList = path.join('.') === 'middleware' && Array.isArray(config.middleware);
    const advice = isList ? ' The list is `middleware.chain`.' : '';
    throw new ConfigError('CONFIG_INVALID', redact(message) + advice, where);
  }
  const unnamed = (config.middleware?.chain ?? []).findIndex(
    (item) => isTable(item) && (item.as as unknown) instanceof Secret,
  );
  if (unnamed !== -1 || config.name instanceof Secret) {
    const path = unnamed === -1 ? ['name'] : ['middleware', 'chain', unnamed, 'as'];
    const why = 'A name is shown everywhere, so it cannot come from an environment variable.';
    throw new ConfigError('CONFIG_INVALID', why, place(file, source, ['allium', ...path]));
  }
  checkTwins(file, source, config);
}

/** Two with one name could only be told apart by their order, which a name is there to avoid. */
function checkTwins(file: string, source: ConfigSource, { middleware }: Config): void {
  const first = new Map<string, number>();
  for (const [index, item] of (middleware?.chain ?? []).entries()) {
    const as = isTable(item) ? reveal(item.as) : undefined;
    if (typeof as !== 'string') continue;
    const before = first.get(as);
    const path: KeyPath = ['allium', 'middleware', 'chain', index, 'as'];
    if (before !== undefined)
      throw new ConfigError(
        'CONFIG_INVALID',
        `chain[${before}] is already called ${JSON.stringify(as)}. Give this one another name.`,
        place(file, source, path),
      );
    first.set(as, index);
  }
}

export function place(
  file: string,
  source: ConfigSource,
  path: KeyPath,
): { file: string; line?: number; key: string } {
  return { file, line: source.lineOf(path), key: keyText(path) };
}
