/** How entries are written in the lines of a file: what all entries of a line share is written once. */

import type { Entry, NewEntry } from '../../index.js';

/**
 * An append line has the version, time and run of its first entry (`v`, `at`, `run`), and its entries only what
 * differs. The entries of every turn are shorter still:
 *
 * - `{"a":{"id":6,…},…}`, `{"u":…}`: a `message` of that run, of the assistant or the user. Its id is the run's, a dot and 6.
 * - `{"r":…}`: a `tool_finished` of that run, with a result that is no error.
 * - `"usage":[10,5,0,0,15]`: input, output, cache read, cache write and total tokens.
 */
export function entriesText(entries: readonly NewEntry[]): string {
  const { v, at, runId } = entries[0]! as NewEntry & { readonly runId?: string };
  const plain = !entries.every(isDated);
  if (plain) return `"e":${JSON.stringify(entries)}`;
  let text = '';
  for (let i = 0; i < entries.length; i++)
    text += `${i === 0 ? '' : ','}${entryText(entries[i]!, v, at, runId)}`;
  const run = typeof runId === 'string' ? `"run":${JSON.stringify(runId)},` : '';
  return `"v":${v},"at":${at},${run}"s":[${text}]`;
}

/** A caller's own kind of entry may lack what all of ours have. */
function isDated({ v, at }: NewEntry): boolean {
  return Number.isFinite(v) && Number.isFinite(at);
}

function entryText(entry: NewEntry, v: number, at: number, runId: string | undefined): string {
  const differs = (entry.v === v ? '' : `,"v":${entry.v}`) + (entry.at === at ? '' : `,"at":${entry.at}`);
  const short =
    runId !== undefined && (entry.type === 'message' || entry.type === 'tool_finished')
      ? shortText(entry as unknown as Spoken, runId)
      : undefined;
  if (short !== undefined) return `{${short}${differs}}`;
  const { v: _, at: __, ...rest } = entry;
  const text = JSON.stringify(rest);
  return differs === '' ? text : `${text.slice(0, -1)}${differs}}`;
}

/** What is certain about an entry that may come from anywhere. */
interface Spoken {
  readonly v: number;
  readonly at: number;
  readonly type: string;
  readonly runId: unknown;
  readonly message: Said;
}

interface Said {
  readonly id: unknown;
  readonly role: unknown;
  readonly usage?: unknown;
  readonly isError?: unknown;
}

const KEYS: Readonly<Record<string, string>> = { user: 'u', assistant: 'a', tool: 'r' };
const ROLES: Readonly<Record<string, string>> = { u: 'user', a: 'assistant', r: 'tool' };

/** Undefined for an entry that isn't like those of every turn. */
function shortText(entry: Spoken, runId: string): string | undefined {
  const { v, at, type, runId: own, message, ...rest } = entry;
  if (own !== runId || typeof message?.role !== 'string') return undefined;
  const key = Object.hasOwn(KEYS, message.role) ? KEYS[message.role] : undefined;
  const isResult = type === 'tool_finished';
  if (key === undefined || (key === 'r') !== isResult || (isResult && message.isError !== false))
    return undefined;
  const number = numberIn(message.id, runId);
  if (number === undefined) return undefined;
  return `"${key}":${messageText(message, number, isResult)}${fieldsOf(rest)}`;
}

function messageText(message: Said, number: string, isResult: boolean): string {
  const { id, role, usage, isError, ...rest } = message;
  const more = isResult || isError === undefined ? rest : { ...rest, isError };
  const used = usage === undefined ? '' : usageText(usage);
  if (used !== undefined) return `{"id":${number}${used}${fieldsOf(more)}}`;
  return `{"id":${number}${fieldsOf({ ...more, usage })}}`;
}

const COUNTS = ['inputTokens', 'outputTokens', 'cacheRead', 'cacheWrite', 'totalTokens'] as const;

function usageText(usage: unknown): string | undefined {
  const counts = usage as Readonly<Record<string, unknown>>;
  let fields = 0;
  for (const _ in counts) fields++;
  if (fields !== COUNTS.length) return undefined;
  let text = '';
  for (const name of COUNTS) {
    if (!Number.isFinite(counts[name])) return undefined;
    text += `${text === '' ? '' : ','}${counts[name]}`;
  }
  return `,"usage":[${text}]`;
}

/** The number after the run in an id, as text. */
function numberIn(id: unknown, runId: string): string | undefined {
  if (typeof id !== 'string' || !id.startsWith(runId) || id[runId.length] !== '.') return undefined;
  const number = id.slice(runId.length + 1);
  return String(Number(number)) === number && Number.isSafeInteger(Number(number)) ? number : undefined;
}

/** The fields of an object that follow others. */
function fieldsOf(rest: object): string {
  for (const _ in rest) {
    const text = JSON.stringify(rest);
    return text === '{}' ? '' : `,${text.slice(1, -1)}`;
  }
  return '';
}

/** An append line as it was parsed. */
export interface AppendLine {
  /** Only in the line with number 1. */
  readonly id: string;
  /** Entries in full, in lines of earlier releases. */
  readonly e?: readonly Entry[];
  readonly v?: number;
  readonly at?: number;
  readonly run?: string;
  readonly s?: readonly object[];
}

/** How many entries a line has; undefined if it has none. */
export function countIn({ e, s }: AppendLine): number | undefined {
  return (e ?? s)?.length;
}

/** The entries of a line, without their numbers. */
export function entriesIn(line: AppendLine): readonly NewEntry[] {
  if (line.s === undefined) return line.e ?? [];
  return line.s.map((entry) => wholeEntry(entry as Fields, line)) as unknown as NewEntry[];
}

type Fields = Record<string, unknown>;

function wholeEntry(short: Fields, { v, at, run }: AppendLine): Fields {
  if ('type' in short) return { v, at, ...short };
  const key = 'a' in short ? 'a' : 'u' in short ? 'u' : 'r';
  const message = wholeMessage(short[key] as Fields, key, run);
  const entry: Fields = { v, at, type: key === 'r' ? 'tool_finished' : 'message', runId: run, message };
  // Copied one by one, which is several times as fast as `...rest`.
  for (const name in short) if (name !== key) set(entry, name, short[name]);
  return entry;
}

function wholeMessage(short: Fields, key: string, run: string | undefined): Fields {
  const message: Fields = { id: `${run}.${short.id}`, role: ROLES[key] };
  for (const name in short) {
    const value = short[name];
    if (name === 'usage' && Array.isArray(value)) message.usage = wholeUsage(value);
    else if (name !== 'id') set(message, name, value);
  }
  if (key === 'r') message.isError = false;
  return message;
}

function wholeUsage(counts: readonly number[]): Fields {
  const [inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens] = counts;
  return { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens };
}

function set(fields: Fields, name: string, value: unknown): void {
  // Assigned, it would become the prototype.
  if (name === '__proto__')
    Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
  else fields[name] = value;
}
