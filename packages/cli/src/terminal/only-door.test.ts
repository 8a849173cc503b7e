// Nothing but this folder writes to a terminal, so nothing gets there without being made safe.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const sources = join(import.meta.dirname, '..');

/** Who may touch what a terminal is written to with. In each of them every text passes `onScreen`. */
const DOORS: readonly (readonly [string, RegExp, readonly string[]])[] = [
  ['writes to a stream', /\.write\(|\.pipe\(|\bpipeline\(/, ['io.ts', 'screen.ts', 'spinner.ts']],
  [
    'hands a stream on',
    /\b(?:output|std(?:out|err)): (?:\w+\.)?(?:std(?:out|err))\b/,
    ['prompts.ts', 'screen.ts'],
  ],
  ['uses a library that draws', /from '(?:@clack\/|node:readline)/, ['prompts.ts', 'screen.ts']],
  ['prints by itself', /\bconsole(?:\.\w+\(|\[)/, ['console.ts']],
];

/** Reads lines from a pipe; and a type. The keys that a chat presses for a person are no output. */
const EXCEPTIONS: Readonly<Record<string, RegExp>> = {
  'chat/piped.ts': /import \{ createInterface \} from 'node:readline';/,
  'chat/terminal.ts': /import type \{ Interface \} from 'node:readline';|this\.readline\.write\(null, /g,
};

const files = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => file.replaceAll('\\', '/'));

it.each(DOORS)('only the listed files: who %s', (_, touching, doors) => {
  const found = files.filter((file) => {
    const text = readFileSync(join(sources, file), 'utf8').replace(EXCEPTIONS[file] ?? /(?!)/, '');
    return touching.test(text);
  });
  expect(found.sort()).toEqual(doors.map((door) => `terminal/${door}`));
});

it('only the program itself uses the streams of the process', () => {
  const found = files.filter((file) =>
    /process\.std(?:out|err)|\} = process;/.test(readFileSync(join(sources, file), 'utf8')),
  );
  expect(found.sort()).toEqual(['main.ts']);
});
