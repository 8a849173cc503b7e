/** Skills on disk: finds them and reads their files, never anything outside a skill's folder. */

import { constants, readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep, win32 } from 'node:path';
import { invalidOption } from '../../kit/index.js';
import { frontMatterOf, invalidSkill } from './front-matter.js';

export const MAIN_FILE = 'SKILL.md';

export interface Skill {
  readonly name: string;
  readonly description: string;
  /** Absolute and without links. */
  readonly folder: string;
}

export interface Found {
  readonly skills: ReadonlyMap<string, Skill>;
  /** Why others can't be used: one bad file doesn't affect the good ones. */
  readonly problems: readonly string[];
}

/**
 * Every folder directly in `dir` that has a SKILL.md, by name. Others, and those that begin with a dot, are not
 * skills.
 */
export function findSkills(dir: string): Found {
  const root = folderAt(dir);
  const problems: string[] = [];
  const found = readdirSync(root)
    .filter((name) => !name.startsWith('.'))
    .sort()
    .flatMap((name) => {
      try {
        return skillAt(root, join(dir, name), name) ?? [];
      } catch (error) {
        // Not necessarily a mistake in it: it may be unreadable.
        const { code, message } = error as Error & { code?: unknown };
        problems.push(
          code === 'INVALID_SKILL' ? message : `${join(dir, name, MAIN_FILE)} cannot be read: ${message}`,
        );
        return [];
      }
    });
  const skills = new Map<string, Skill>();
  for (const skill of found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))) {
    const other = skills.get(skill.name);
    if (other)
      problems.push(
        `${join(skill.folder, MAIN_FILE)}:1 has the same name as ${other.folder}: "${skill.name}". Rename one of them.`,
      );
    else skills.set(skill.name, skill);
  }
  return { skills, problems };
}

function folderAt(dir: unknown): string {
  if (typeof dir !== 'string' || dir === '') throw invalidOption('dir', 'the path of a folder', dir);
  if (!statAt(dir)?.isDirectory()) throw invalidOption('dir', 'a folder that exists', dir);
  return realpathSync(dir);
}

function skillAt(root: string, shown: string, name: string): Skill | undefined {
  const path = join(root, name);
  const main = join(path, MAIN_FILE);
  if (!statAt(path)?.isDirectory() || !statAt(main)?.isFile()) return undefined;
  const folder = realpathSync(path);
  const file = join(shown, MAIN_FILE);
  if (!isInside(root, folder) || !isInside(folder, realpathSync(main)))
    throw invalidSkill(
      file,
      1,
      'is behind a symbolic link that leads out of the folder. Copy the skill there instead.',
    );
  return { ...frontMatterOf(readFileSync(main, 'utf8'), file), folder };
}

function statAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A loop of links, or a file where a folder should be.
    return undefined;
  }
}

/** Why a file is not read, in words for the model. */
export class Refused extends Error {}

/** The text of a file of a skill. Throws Refused for everything else. */
export async function readSkillFile(
  { name, folder }: Skill,
  file: string,
  maxBytes: number,
): Promise<string> {
  // The same words for what is outside and what doesn't exist, so that nothing is revealed about the rest of the
  // disk.
  const refused = new Refused(`${JSON.stringify(file)} is not a file of the skill "${name}".`);
  const leaves =
    isAbsolute(file) || win32.isAbsolute(file) || /^[a-z]:/i.test(file) || file.split(/[\\/]/).includes('..');
  if (file === '' || file.includes('\0') || leaves) throw refused;
  const real = await realpath(join(folder, file)).catch(() => undefined);
  if (real === undefined || !isInside(folder, real)) throw refused;
  // Links were followed above; a link that was put there since is not followed. Nor does a pipe block us.
  const handle = await open(
    real,
    constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
  ).catch(() => undefined);
  if (!handle) throw refused;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw refused;
    if (stats.size > maxBytes)
      throw new Refused(
        `${JSON.stringify(file)} has ${stats.size} bytes, more than the ${maxBytes} that may be read.`,
      );
    const text = await handle.readFile('utf8');
    if (text.includes('\0')) throw new Refused(`${JSON.stringify(file)} is not a text.`);
    return text;
  } finally {
    await handle.close();
  }
}

const MAX_LISTED = 50;

/** The files of a skill, for a model that asked for one that doesn't exist. Links are not followed. */
export async function filesOf({ folder }: Skill): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort()
    .slice(0, MAX_LISTED);
}

function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
