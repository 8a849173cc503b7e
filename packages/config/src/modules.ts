/** Modules of the user, and packages as code in the folder of a config file finds them. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AlliumError } from 'allium';
import { ConfigError } from './config-error.js';
import type { KeyPath } from './locate.js';

export type Module = Readonly<Record<string, unknown>>;

/** Is it a path, and not the name of something? */
export function isPath(name: string): boolean {
  return /^(\.{1,2}[\\/]|[\\/]|[a-z]:[\\/]|file:)/i.test(name);
}

/** For unknown names: a path without ./ looks like a name. */
export const OWN_FILE = 'A file of yours begins with ./';

/** Imports a file. A TypeScript file needs a Node that strips types, or a loader. */
export async function importFile(file: string): Promise<Module> {
  try {
    return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Module;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error;
    throw new ConfigError(
      'CONFIG_INVALID',
      `Node ${process.versions.node} does not run TypeScript. Use Node ≥ 22.18, start it with a loader (node --import tsx), or write JavaScript: .mjs in the place of .ts.`,
      { file, cause: error },
    );
  }
}

/** Imports a file that somebody named. Errors in it are reported with the file and, if Node says so, the line. */
export async function importNamed(file: string): Promise<Module> {
  try {
    return await importFile(file);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = error instanceof AlliumError ? error.code : 'CONFIG_INVALID';
    const message = error instanceof Error ? error.message : String(error);
    const where = await placeOf(error, file);
    const elsewhere = error instanceof SyntaxError && where.line === undefined;
    const hint = elsewhere ? '. It is in this file or in one that it imports.' : '';
    throw new ConfigError(code, `${message}${hint}`, { ...where, cause: error });
  }
}

/**
 * Most errors have the file in their stack. For a syntax error `import()` doesn't say where it is, but `node --check`
 * does.
 */
async function placeOf(error: unknown, file: string): Promise<{ file: string; line?: number }> {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const line = lineAfter(stack, pathToFileURL(file).href) ?? lineAfter(stack, file);
  if (line !== undefined || !(error instanceof SyntaxError)) return { file, line };
  const [{ execFile }, { promisify }] = await Promise.all([
    import('node:child_process'),
    import('node:util'),
  ]);
  const { stderr } = await promisify(execFile)(process.execPath, ['--check', file]).catch(
    (failed: { stderr?: string }) => failed,
  );
  return { file, line: lineAfter(stderr ?? '', file) };
}

function lineAfter(text: string, path: string): number | undefined {
  const at = text.indexOf(`${path}:`);
  const line = at === -1 ? Number.NaN : Number.parseInt(text.slice(at + path.length + 1), 10);
  return Number.isNaN(line) ? undefined : line;
}

/** `./tools.mjs#hammer` is the export `hammer` of that file; without `#` it is the default. */
export async function importUser(
  dir: string,
  name: string,
): Promise<{ module: Module; chosen: unknown; file: string }> {
  const [path = '', chosen] = name.replace(/^file:\/\//, '').split('#');
  const file = resolve(dir, path);
  if (!existsSync(file)) throw new ConfigError('CONFIG_INVALID', `There is no file ${file}.`);
  const module = await importNamed(file);
  const wanted = chosen ?? 'default';
  if (chosen !== undefined && !(wanted in module))
    throw new ConfigError(
      'CONFIG_INVALID',
      `${file} has no export \`${chosen}\`. It has: ${exportsOf(module)}.`,
    );
  return { module, chosen: module[wanted], file };
}

export function exportsOf(module: Module): string {
  return Object.keys(module).join(', ') || 'none';
}

export interface PackageJson {
  readonly name?: string;
  readonly version?: string;
  readonly exports?: unknown;
  readonly main?: string;
  readonly allium?: unknown;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** The package of that name that code in `dir` would get. */
export function findPackage(
  dir: string,
  name: string,
): { folder: string; manifest: PackageJson } | undefined {
  for (const modules of modulesFolders(dir)) {
    const folder = join(modules, name);
    if (existsSync(join(folder, 'package.json'))) return { folder, manifest: readManifest(folder) };
  }
  return undefined;
}

export function modulesFolders(dir: string): readonly string[] {
  const folders: string[] = [];
  for (let at = resolve(dir); ; at = dirname(at)) {
    if (existsSync(join(at, 'node_modules'))) folders.push(join(at, 'node_modules'));
    if (dirname(at) === at) return folders;
  }
}

export function readManifest(folder: string): PackageJson {
  const file = join(folder, 'package.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PackageJson;
  } catch (error) {
    throw new ConfigError('PLUGIN_INVALID', `${file} cannot be read: ${(error as Error).message}.`);
  }
}

/** The file that `import` of a package loads. */
export function entryOf(folder: string, { exports, main = 'index.js' }: PackageJson): string {
  const root = typeof exports === 'object' && exports !== null && '.' in exports ? exports['.'] : exports;
  return join(folder, target(root) ?? main);
}

function target(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(target).find((one) => one !== undefined);
  if (typeof value !== 'object' || value === null) return undefined;
  const conditions = Object.entries(value).filter(([key]) =>
    ['import', 'node', 'module-sync', 'default'].includes(key),
  );
  return conditions.map(([, one]) => target(one)).find((one) => one !== undefined);
}

/** Imports packages as code in `dir` would. What isn't there is looked for beside this package. */
export function loaderFrom(dir: string): (specifier: string) => Promise<unknown> {
  return async (specifier) => {
    const found = findPackage(dir, specifier);
    return found ? importFile(entryOf(found.folder, found.manifest)) : import(/* @vite-ignore */ specifier);
  };
}

/** `['allium', 'chain', 2, 'use']` → `allium.chain[2].use`. */
export function keyText(path: KeyPath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');
}
