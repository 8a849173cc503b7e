/** Which arguments are paths, by their names and by their look. */

/** Last words of names whose values are paths, whatever they look like. */
const NAMES = new Set([
  ...['path', 'paths', 'filepath', 'filepaths', 'pathname', 'pathnames', 'file', 'files'],
  ...['filename', 'filenames', 'dir', 'dirs', 'dirname', 'directory', 'directories', 'folder', 'folders'],
  ...['src', 'source', 'sources', 'target', 'targets', 'dest', 'destination', 'destinations', 'cwd'],
]);

/** `FILE_PATH`, `sourceFile` and `file-name`, but not `profile` or `fileContent`. */
export function isPathName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  return NAMES.has(words.at(-1) ?? '') || NAMES.has(words.slice(-2).join(''));
}

/** Longer than any path, or of several lines: a text. */
const LONGEST = 4096;
/** From the top, from a drive, from a home folder, from this folder or the one above, or a URL of a file. */
const ROOTED = /^(?:[\\/]|[a-z]:[\\/]|~(?:[\\/]|$)|\.[\\/]|file:)/i;
const UPWARD = /(?:^|[\\/])\.\.(?:[\\/]|$)/;
/** With a folder, an ending, or a dot in front. */
const RELATIVE = /[\\/]|\.\w{1,10}$|^\.\w/;
const URL_LIKE = /^[a-z][a-z0-9+.-]*:\/\//i;

/** `clearly`: a path for certain. `maybe`: one if there is something by that name. */
export function looksLikePath(text: string): 'clearly' | 'maybe' | 'no' {
  if (text === '' || text.length > LONGEST || /[\r\n]/.test(text)) return 'no';
  if (ROOTED.test(text) || UPWARD.test(text)) return 'clearly';
  return RELATIVE.test(text) && !URL_LIKE.test(text) ? 'maybe' : 'no';
}

/** A text in the arguments of a call, or a key: the keys in `{ '/etc/motd': 'Hi' }` are chosen just as freely. */
export interface Found {
  /** `edits[0].file` */
  readonly at: string;
  readonly value: string;
  /** Its name says that it is a path, or it is in a list whose name does. */
  readonly named: boolean;
}

/**
 * The value with every text replaced by what `judged` returns; the same value if nothing changes. Keys are judged
 * too, but stay as they are.
 */
export async function mapTexts(
  value: unknown,
  isNamed: (name: string) => boolean,
  judged: (found: Found) => Promise<string>,
  at = '',
  named = false,
): Promise<unknown> {
  if (typeof value === 'string') return judged({ at, value, named });
  if (typeof value !== 'object' || value === null) return value;
  const list = Array.isArray(value);
  const entries: [string, unknown][] = [];
  let changed = false;
  for (const [key, item] of Object.entries(value)) {
    const where = list ? `${at}[${key}]` : `${at}${at && '.'}${key}`;
    if (!list) await judged({ at: where, value: key, named: false });
    const next = await mapTexts(item, isNamed, judged, where, list ? named : isNamed(key));
    changed ||= next !== item;
    entries.push([key, next]);
  }
  if (!changed) return value;
  return list ? entries.map(([, item]) => item) : Object.fromEntries(entries);
}
