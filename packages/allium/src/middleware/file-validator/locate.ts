/** Where a path really leads. */
import type { Stats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Why a path may not be used, in words for the model. */
export class Refused extends Error {
  constructor(path: string, why: string) {
    super(`${JSON.stringify(path)} ${why}.`);
  }

  /** The same, with the argument that the path was in. */
  at(argument: string): Refused {
    if (argument !== '') this.message += ` (Argument: ${argument}.)`;
    return this;
  }
}

export interface Located {
  /** Absolute and without links. */
  readonly real: string;
  /** Absent when there is nothing there yet. */
  readonly stats: Stats | undefined;
}

/**
 * Refuses a text that leads out of the roots, whether it is read from the first root or from the folder of the
 * process: nobody knows which of them the tool uses. A text that may not be a path is only refused if there is
 * something at that path.
 */
export async function checkInside(text: string, roots: readonly string[], isClear: boolean): Promise<void> {
  const path = plainPath(text);
  if (isClear) await locate(path, roots, text);
  for (const base of [roots[0]!, process.cwd()]) {
    const absolute = resolve(base, path);
    const isThere = await lstat(absolute).then(
      () => true,
      () => false,
    );
    if (isThere) await locate(absolute, roots, text);
  }
}

/**
 * What shells and libraries make of `~`, `file:`, and paths of another system. A path that nobody can follow becomes
 * the top.
 */
function plainPath(text: string): string {
  if (/^~(?:[\\/]|$)/.test(text)) return join(homedir(), text.slice(1));
  if (/^file:/i.test(text)) {
    try {
      return fileURLToPath(text);
    } catch {
      return sep;
    }
  }
  if (sep === '\\') return text;
  return /^[a-z]:[\\/]/i.test(text) ? sep : text.replaceAll('\\', '/');
}

/** Resolves a path. Throws Refused if it leads out of the roots or can't be followed. */
export async function locate(path: string, roots: readonly string[], told = path): Promise<Located> {
  // A path that can't be followed is refused in the same words as one outside, so that nothing is revealed about what
  // is there.
  const outside = new Refused(told, 'is outside the allowed folders');
  if (path.includes('\0')) throw outside;
  const found = await follow(resolve(roots[0]!, path)).catch(() => undefined);
  if (!found) throw outside;
  const allowed = await Promise.all(roots.map((root) => realpath(root).catch(() => undefined)));
  if (!allowed.some((root) => root !== undefined && isInside(root, found.real))) throw outside;
  return found;
}

/** Follows links as far as something exists. What comes after that would be created there. */
async function follow(absolute: string): Promise<Located> {
  const missing: string[] = [];
  for (let at = absolute; ; at = dirname(at)) {
    try {
      const real = await realpath(at);
      if (missing.length > 0) return { real: join(real, ...missing), stats: undefined };
      return { real, stats: await stat(real) };
    } catch (error) {
      // A link that leads nowhere: creating this path creates what the link names.
      const dangling = await lstat(at).then(
        () => true,
        () => false,
      );
      if (dangling || (error as { code?: unknown }).code !== 'ENOENT' || dirname(at) === at) throw error;
      missing.unshift(basename(at));
    }
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
