/** The lines that were typed, kept between chats. A history that can't be read or written is no reason to stop. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const fileIn = (dir: string): string => join(dir, '.allium', 'chat-history');

/** Newest first, as readline wants it. */
export function readHistory(dir: string): string[] {
  try {
    return readFileSync(fileIn(dir), 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

export function writeHistory(dir: string, lines: readonly string[]): void {
  try {
    if (!existsSync(dirname(fileIn(dir)))) mkdirSync(dirname(fileIn(dir)));
    writeFileSync(fileIn(dir), `${lines.slice(0, 500).join('\n')}\n`, { mode: 0o600 });
  } catch {
    // Read-only folders are fine.
  }
}
