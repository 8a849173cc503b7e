/** The file of a session, and the session of a file whose beginning can't be read. */
import { createHash } from 'node:crypto';

/** Ids that are safe as they are stay readable; others get a hash, since file systems fold case and limit length. */
export function fileName(sessionId: string): string {
  if (/^[a-z0-9][a-z0-9_-]{0,99}$/.test(sessionId) && !/^(con|prn|aux|nul|com\d|lpt\d)$/.test(sessionId))
    return sessionId;
  return `${readable(sessionId)}~${createHash('sha256').update(sessionId).digest('hex').slice(0, 32)}`;
}

/** How names with a hash begin. */
export function readable(sessionId: string): string {
  return sessionId.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 40);
}

/** Is it a name with a hash, which doesn't reveal the id? */
export function isHashed(name: string): boolean {
  return /^[A-Za-z0-9_-]{0,40}~[0-9a-f]{32}$/.test(name);
}

/** Can a file of that name hold a session? Others may keep files in the directory, too. */
export function isFileName(name: string): boolean {
  return isHashed(name) || fileName(name) === name;
}

/**
 * The id of the session in a damaged file: what its first line still says, if the file is named after that, or else
 * the name itself.
 */
export function idOfDamaged(bytes: Buffer, name: string): string {
  if (!isHashed(name)) return name;
  for (const [, text] of bytes.toString('utf8', 0, BEGINNING).matchAll(/"id":("(?:[^"\\]|\\.)*")/g)) {
    const id = parsed(text!);
    if (id !== undefined && fileName(id) === name) return id;
  }
  return name;
}

/** How many bytes to search: the id comes before the entries, and only earlier posts come before it. */
const BEGINNING = 100_000;

function parsed(json: string): string | undefined {
  try {
    return JSON.parse(json) as string;
  } catch {
    return undefined;
  }
}
