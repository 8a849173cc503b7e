/** Keeps the paths that a model hands to tools inside given folders. */

import { resolve } from 'node:path';
import {
  defineMiddleware,
  isControl,
  type Middleware,
  type ToolContext,
  type ToolVerdict,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { checkInside, type Located, locate, Refused } from './locate.js';
import { type Found, isPathName, looksLikePath, mapTexts } from './path-arguments.js';

const TEXTS = kinds.listOf(kinds.nonEmptyText, 'a non-empty list of non-empty texts', 1);

export const OPTIONS = {
  /** Folders that paths must stay inside. A model's relative paths start from the first. */
  roots: kinds.required(TEXTS),
  /** Endings that files may have, such as `.md`; case makes no difference. @default any */
  extensions: TEXTS,
  /** The largest size of an existing file, in bytes: an integer ≥ 0. @default any number */
  maxBytes: kinds.integer(0),
  /** Refuse paths that do not exist; `false` also lets tools create files and folders. @default true */
  mustExist: kinds.withDefault(kinds.flag, true),
  /**
   * Which arguments are paths, at any depth: names for all tools, or names by tool; case makes no difference. With
   * it, nothing else is judged. @default those named like one (path, filePath, src, target, …), and others that look
   * like one
   */
  args: {
    ...kinds.either(TEXTS, kinds.recordOf(TEXTS)),
    expected: 'a list of names, or lists of names by tool',
  },
  ...named('file-validator'),
} satisfies Fields;

export interface FileValidatorOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Resolves path arguments, symbolic links included, and refuses calls whose paths leave `roots` or break another
 * rule. The tool gets the resolved, absolute path, so it opens exactly what was judged.
 *
 * @example
 * new Agent({ model, tools: [read], middleware: [fileValidator({ roots: ['docs'], extensions: ['.md'] })] });
 */
export function fileValidator(options: FileValidatorOptions): Middleware {
  const { mustExist, maxBytes, args, name, madeWith, ...settings } = readOptions(
    'fileValidator',
    OPTIONS,
    options,
  );
  // Resolved now, so that they stay the same if the process changes its folder.
  const roots = settings.roots.map((root) => resolve(root));
  const extensions = settings.extensions?.map(ending);
  const namesFor = args === undefined ? () => isPathName : namesOf(args);

  /** The text as the tool is to get it. */
  async function judge({ value, named }: Found): Promise<string | undefined> {
    if (named) {
      const located = await locate(value, roots);
      checkRules(value, located);
      return located.real;
    }
    // Nobody said which arguments are paths, so anything that looks like one must not lead out either. It is passed
    // on as it is.
    // Some tools trim their arguments.
    const text = value.trim();
    const looks = args === undefined ? looksLikePath(text) : 'no';
    if (looks !== 'no') await checkInside(text, roots, looks === 'clearly');
    return looks === 'clearly' ? value : undefined;
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
    name,
    madeWith,
    looksBack: 0,
    traits: ['protects'],
    async beforeToolCall(ctx: ToolContext): Promise<ToolVerdict | undefined> {
      const isNamed = namesFor(ctx.tool?.name ?? ctx.toolCall.name);
      if (!isNamed) return undefined;
      const judgedArgs: string[] = [];
      try {
        const args = await mapTexts(ctx.rawArgs, isNamed, async (found) => {
          const judged = await judge(found).catch((error) => {
            throw error instanceof Refused ? error.at(found.at) : error;
          });
          if (judged !== undefined) judgedArgs.push(found.at);
          return judged ?? found.value;
        });
        if (judgedArgs.length > 0) ctx.emit('paths_judged', { tool: ctx.toolCall.name, args: judgedArgs });
        return args === ctx.rawArgs ? undefined : { args };
      } catch (error) {
        if (isControl(error) || !(error instanceof Refused)) throw error;
        return { block: true, reason: `Not run: ${error.message}` };
      }
    },
  });
}

/** An ending with its dot. */
function ending(extension: string): string {
  return (extension.startsWith('.') ? extension : `.${extension}`).toLowerCase();
}

type IsNamed = (name: string) => boolean;

function namesOf(args: NonNullable<FileValidatorOptions['args']>): (tool: string) => IsNamed | undefined {
  if (isList(args)) {
    const isNamed = oneOf(args);
    return () => isNamed;
  }
  const byTool = new Map(Object.entries(args).map(([tool, names]) => [tool, oneOf(names)]));
  return (tool) => byTool.get(tool);
}

function isList<T>(value: readonly string[] | T): value is readonly string[] {
  return Array.isArray(value);
}

function oneOf(listed: readonly string[]): IsNamed {
  const names = new Set(listed.map((name) => name.toLowerCase()));
  return (name) => names.has(name.toLowerCase());
}
