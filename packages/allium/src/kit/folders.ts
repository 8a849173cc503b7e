/** Folders: making them, for middleware and stores that keep files. */

/** The part of Node's `fs` that is used. */
export interface FolderFiles {
  mkdirSync(dir: string, options: { readonly mode?: number }): unknown;
  statSync(dir: string, options: { readonly throwIfNoEntry: false }): { isDirectory(): boolean } | undefined;
}

/**
 * Makes a folder and its parents. Node's own `recursive` never returns on file systems that take no folders, such as
 * /proc.
 */
export function makeFolder(
  fs: FolderFiles,
  dirname: (path: string) => string,
  dir: string,
  mode?: number,
): void {
  const isThere = (): boolean => fs.statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isThere()) return;
  const above = dirname(dir);
  if (above !== dir) makeFolder(fs, dirname, above, mode);
  try {
    fs.mkdirSync(dir, mode === undefined ? {} : { mode });
  } catch (error) {
    // Somebody else was faster.
    if (!isThere()) throw error;
  }
}
