/** What the laws write. */

import { ENTRY_VERSION, type InboxItem, type NewEntry } from '../../index.js';
/** A time as clocks give it: it needs more than 32 bits. */
export const NOW = 1_800_000_000_123;

export const head = () => ({ v: ENTRY_VERSION, at: 1_000 });

export function text(id: string): NewEntry & { readonly type: 'message' } {
  return {
    ...head(),
    type: 'message',
    runId: 'r',
    message: { id, role: 'user', content: [{ type: 'text', text: id }] },
  };
}

/** Messages `0`, `1`, `2` and so on. */
export function numbered(length: number): readonly ReturnType<typeof text>[] {
  return Array.from({ length }, (_, i) => text(`${i}`));
}

export function state(value: unknown): NewEntry {
  return { ...head(), type: 'state', cell: 'c', version: 1, value };
}

export function run(runId: string, tenant: string | undefined, at: number): NewEntry {
  return {
    v: ENTRY_VERSION,
    at,
    type: 'run_start',
    runId,
    plan: [],
    ...(tenant !== undefined && { tenant }),
  };
}

export const cancel = (reason: string): InboxItem => ({ type: 'cancel', reason });

export const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1.5,
  Number.MAX_SAFE_INTEGER,
  1e300,
  5e-324,
  '',
  [],
  {},
  [null, [[]], { '': {} }],
  { a: null, 'key with "quotes" \\ and \n': '\t\r\n"\\/' },
  JSON.parse('{"__proto__":{"x":1},"constructor":2,"1":"number-like","toString":null}'),
  Array.from({ length: 60 }).reduce((inner: unknown) => ({ inner }), 'deep'),
];

export const UNICODE: readonly string[] = [
  'é ü ß',
  '日本語',
  '🧅👩‍👩‍👧‍👦',
  '\u0000 in the \u0000 middle',
  '\u2028\u2029',
  '\ufeff',
  'e\u0301',
  '\ud83e',
  '\udd45',
  'cut \ud83e here',
  '\uffff',
  '\u007f\u0080',
];

export const ODD_IDS: readonly string[] = [
  'plain',
  'UPPER',
  'upper',
  'a b',
  'a/b',
  '../up',
  '..',
  'C:\\x',
  "it's",
  '"q"',
  '%41',
  'a%',
  'a_',
  '日本',
  '🧅',
  ':',
  '*',
  '\n',
  'con',
  'l'.repeat(300),
  'é',
  'e\u0301',
];
