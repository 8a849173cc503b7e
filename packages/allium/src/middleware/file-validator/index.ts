/** Keeps the paths that a model hands to tools inside given folders. */
import { resolve } from 'node:path';
import type { ToolContext } from '../../kernel/context.js';
import { invalidOption, isControl } from '../../kernel/errors.js';
import { defineMiddleware, type Middleware, type ToolVerdict } from '../../kernel/middleware.js';
import { checkInteger, checkNamed, type NamedOptions } from '../../kernel/options.js';
import { type Located, locate, Refused } from './locate.js';

export interface FileValidatorOptions extends NamedOptions {
  /** Folders that paths must stay inside of. Relative paths of a model start from the first. */
  readonly roots: readonly string[];
  /** Endings that files may have, such as `.md`; case makes no difference. @default any */
  readonly extensions?: readonly string[];
  /** Bytes that an existing file may have: an integer ≥ 0. @default any number */
  readonly maxBytes?: number;
  /** Refuse paths that do not exist; `false` also lets tools create files and folders. @default true */
  readonly mustExist?: boolean;
  /** Which arguments are paths, at any depth: names for all tools, or names by tool. @default path, paths, file, files, … */
  readonly args?: readonly string[] | Readonly<Record<string, readonly string[]>>;
}

/** What path arguments are called where nobody says. */
const USUAL = [
  ...['path', 'paths', 'file', 'files', 'filePath', 'filePaths', 'file_path', 'file_paths'],
  ...['filename', 'fileName', 'file_name', 'dir', 'directory', 'folder'],
];

/**
 * Resolves path arguments, symbolic links included, and refuses calls whose paths leave `roots` or break one of the
 * other rules. The tool is given the resolved, absolute path: what was judged is what it opens.
 *
 * @example
 * new Agent({ model, tools: [read], middleware: [fileValidator({ roots: ['docs'], extensions: ['.md'] })] });
 */
export function fileValidator(options: FileValidatorOptions): Middleware {
  checkNamed('fileValidator', options, ['roots', 'extensions', 'maxBytes', 'mustExist', 'args']);
  const { mustExist = true, maxBytes, args = USUAL } = options;
  // Resolved now: a process that changes its folder later does not move them.
  const roots = texts('roots', options.roots, 1).map((root) => resolve(root));
  const extensions = options.extensions === undefined ? undefined : endingsOf(options.extensions);
  if (maxBytes !== undefined) checkInteger('maxBytes', maxBytes, 0);
  if (typeof mustExist !== 'boolean') throw invalidOption('mustExist', 'true or false', mustExist);
  const namesFor = namesOf(args);

  async function judged(path: string): Promise<string> {
    const located = await locate(path, roots);
    checkRules(path, located);
    return located.real;
  }

  function checkRules(path: string, { real, stats }: Located): void {
    if (!stats && mustExist) throw new Refused(path, 'does not exist');
    if (stats?.isDirectory()) return;
    if (stats && !stats.isFile()) throw new Refused(path, 'is neither a file nor a folder');
    if (extensions && !extensions.some((ending) => real.toLowerCase().endsWith(ending)))
      throw new Refused(path, `must end with ${extensions.join(', ')}`);
    if (stats && maxBytes !== undefined && stats.size > maxBytes)
      throw new Refused(path, `has ${stats.size} bytes, more than the ${maxBytes} allowed`);
  }

  return defineMiddleware({
    name: options.name ?? 'file-validator',
    traits: ['protects'],
    async beforeToolCall(ctx: ToolContext): Promise<ToolVerdict | undefined> {
      const names = namesFor(ctx.tool?.name ?? ctx.toolCall.name);
      if (!names) return undefined;
      try {
        const args = await mapped(ctx.rawArgs, names, false, judged);
        return args === ctx.rawArgs ? undefined : { args };
      } catch (error) {
        if (isControl(error) || !(error instanceof Refused)) throw error;
        return { block: true, reason: `Not run: ${error.message}` };
      }
    },
  });
}

function texts(option: string, value: unknown, least: number): readonly string[] {
  const fine =
    Array.isArray(value) &&
    value.length >= least &&
    value.every((one) => typeof one === 'string' && one !== '');
  if (!fine) throw invalidOption(option, `a ${least > 0 ? 'non-empty ' : ''}list of non-empty texts`, value);
  return value;
}

function endingsOf(extensions: readonly string[]): readonly string[] {
  const dotted = (one: string) => (one.startsWith('.') ? one : `.${one}`).toLowerCase();
  return texts('extensions', extensions, 1).map(dotted);
}

function namesOf(args: unknown): (tool: string) => ReadonlySet<string> | undefined {
  if (Array.isArray(args)) {
    const names = new Set(texts('args', args, 1));
    return () => names;
  }
  if (typeof args !== 'object' || args === null)
    throw invalidOption('args', 'a list of names, or lists of names by tool', args);
  const byTool = new Map(
    Object.entries(args).map(([tool, names]) => [tool, new Set(texts(`args.${tool}`, names, 1))]),
  );
  return (tool) => byTool.get(tool);
}

/** The value with every path in it as `judged` returns it; the same value when nothing changes. */
async function mapped(
  value: unknown,
  names: ReadonlySet<string>,
  isPath: boolean,
  judged: (path: string) => Promise<string>,
): Promise<unknown> {
  if (typeof value === 'string') return isPath ? judged(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  const list = Array.isArray(value);
  const entries: [string, unknown][] = [];
  let changed = false;
  for (const [key, item] of Object.entries(value)) {
    const next = await mapped(item, names, list ? isPath : names.has(key), judged);
    changed ||= next !== item;
    entries.push([key, next]);
  }
  if (!changed) return value;
  return list ? entries.map(([, item]) => item) : Object.fromEntries(entries);
}
