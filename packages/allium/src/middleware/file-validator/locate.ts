/** Where a path really leads. */
import type { Stats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Why a path may not be used, in words for the model. */
export class Refused extends Error {
  constructor(path: string, why: string) {
    super(`${JSON.stringify(path)} ${why}.`);
  }
}

export interface Located {
  /** Absolute and without links. */
  readonly real: string;
  /** Absent when there is nothing there yet. */
  readonly stats: Stats | undefined;
}

/** Resolves a path; throws Refused when it leads out of the roots or cannot be followed. */
export async function locate(path: string, roots: readonly string[]): Promise<Located> {
  // What cannot be followed is refused in the same words as what lies outside: nothing is told about what is there.
  const outside = new Refused(path, 'is outside the allowed folders');
  if (path.includes('\0')) throw outside;
  const found = await follow(resolve(roots[0]!, path)).catch(() => undefined);
  if (!found) throw outside;
  const allowed = await Promise.all(roots.map((root) => realpath(root).catch(() => undefined)));
  if (!allowed.some((root) => root !== undefined && isInside(root, found.real))) throw outside;
  return found;
}

/** Follows links as far as something exists; what comes after that is to be created there. */
async function follow(absolute: string): Promise<Located> {
  const missing: string[] = [];
  for (let at = absolute; ; at = dirname(at)) {
    try {
      const real = await realpath(at);
      if (missing.length > 0) return { real: join(real, ...missing), stats: undefined };
      return { real, stats: await stat(real) };
    } catch (error) {
      // A link that leads nowhere: whoever creates this path creates what the link names.
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
