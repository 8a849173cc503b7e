/** The difference between two JSON values, part by part. */

import type { ValueChange } from '../index.js';
import { frozenJson, isFrozenJson, isPlainObject, isRecord, toStoredJson } from '../kit/index.js';

/** Values that are nested deeper aren't compared. */
const DEEPEST = 1000;
/** More differences than this are recorded as one: the whole value. */
const MOST = 100;
/** Texts up to this length are recorded whole. */
const SHORT = 80;

/** Only what differs is looked at and copied. Undefined if that isn't JSON. */
export function valueChanges(before: unknown, after: unknown): readonly ValueChange[] | undefined {
  const found: ValueChange[] = [];
  try {
    compare(before, after, [], found);
    return found.length > MOST ? [changed([], before, after)] : found;
  } catch {
    return undefined;
  }
}

/** The differences between two values. What isn't JSON is recorded as `JSON.stringify` would write it. */
export function plainChanges(before: unknown, after: unknown): readonly ValueChange[] {
  const plain = valueChanges(before, after);
  if (plain) return plain;
  const [from, to] = [jsonOf(before), jsonOf(after)];
  return valueChanges(from, to) ?? [{ path: [], from, to }];
}

/** The value as JSON. */
export function jsonOf(given: unknown): unknown {
  if (given === undefined || isFrozenJson(given)) return given;
  try {
    return frozenJson(given);
  } catch {
    return toStoredJson(given);
  }
}

type Path = ValueChange['path'];
type Values = Readonly<Record<string, unknown>>;

function compare(before: unknown, after: unknown, path: Path, found: ValueChange[]): void {
  if (before === after || found.length > MOST) return;
  if (typeof before === 'string' && typeof after === 'string') found.push(textChange(path, before, after));
  else if (Array.isArray(before) && Array.isArray(after)) compareLists(before, after, path, found);
  else if (isRecord(before) && isRecord(after)) compareObjects(before, after, path, found);
  else found.push(changed(path, before, after));
}

function compareLists(
  before: readonly unknown[],
  after: readonly unknown[],
  path: Path,
  found: ValueChange[],
): void {
  if (path.length > DEEPEST) throw NOT_JSON;
  const length = Math.max(before.length, after.length);
  for (let i = 0; i < length; i++) {
    const [from, to] = [before[i], after[i]];
    if ((from === undefined && i < before.length) || (to === undefined && i < after.length)) throw NOT_JSON;
    if (from !== to) compare(from, to, [...path, i], found);
  }
}

function compareObjects(before: Values, after: Values, path: Path, found: ValueChange[]): void {
  if (!isOpen(before) || !isOpen(after) || path.length > DEEPEST) throw NOT_JSON;
  for (const key of Object.keys(before)) {
    const from = before[key];
    const to = Object.hasOwn(after, key) ? after[key] : undefined;
    if (from !== to && from !== undefined) compare(from, to, [...path, key], found);
  }
  for (const key of Object.keys(after)) {
    const isNew = !Object.hasOwn(before, key) || before[key] === undefined;
    if (isNew && after[key] !== undefined) compare(undefined, after[key], [...path, key], found);
  }
}

const NOT_JSON = new TypeError('Not JSON.');

/** Do its properties say everything about it? */
function isOpen(value: object): boolean {
  return isPlainObject(value) && !('toJSON' in value && typeof value.toJSON === 'function');
}

function changed(path: Path, from: unknown, to: unknown): ValueChange {
  if (from === undefined) return to === undefined ? { path } : { path, to: own(to) };
  return to === undefined ? { path, from: own(from) } : { path, from: own(from), to: own(to) };
}

/** A copy that nobody else can change. */
function own(value: unknown): unknown {
  return isFrozenJson(value) ? value : frozenJson(value);
}

function textChange(path: Path, before: string, after: string): ValueChange {
  if (before.length <= SHORT && after.length <= SHORT) return { path, from: before, to: after };
  const { start, end } = splice(before, after);
  return { path, at: start, from: before.slice(start, end), to: inserted(before, after, { start, end }) };
}

interface Cut {
  readonly start: number;
  readonly end: number;
}

/** The part of `before` that has to be replaced to get `after`. It never splits a surrogate pair. */
export function splice(before: string, after: string): Cut {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  if (isHighSurrogate(before.charCodeAt(start - 1))) start--;
  let left = 0;
  while (
    left < most - start &&
    before.charCodeAt(before.length - 1 - left) === after.charCodeAt(after.length - 1 - left)
  )
    left++;
  if (isHighSurrogate(before.charCodeAt(before.length - left - 1)) && left > 0) left--;
  return { start, end: before.length - left };
}

/** The text in `after` where `before` was cut. */
export function inserted(before: string, after: string, { start, end }: Cut): string {
  return after.slice(start, after.length - (before.length - end));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Do two JSON values say the same? */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual((a as Values)[key], (b as Values)[key]));
}
