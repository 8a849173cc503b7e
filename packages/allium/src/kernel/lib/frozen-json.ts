/** Frozen copies of JSON values. If something in a value is not JSON, the error says where. */
import { AlliumError, isPlainObject, leaveAlone, messageOf, shown } from './errors.js';
import { DEEPEST, depthOf } from './json-texts.js';

/**
 * A frozen copy of a JSON value, without undefined properties. Throws for anything else; `refusal` makes the error (by default
 * that of a state cell).
 */
export function toJson<T>(value: T, name: string, refusal: Refusal = noCellValue): T {
  const made = copied(value, 0);
  if (made !== NOT_JSON) return made as T;
  leaveAlone(value);
  throw refusal(name, flawIn(value, '', []) ?? { at: '', what: shown(value) });
}

/**
 * A frozen copy of JSON. Other values are returned as they are and not frozen, because their owner may still use them. Throws
 * the error of `refusal` for a value that can't be written as JSON at all.
 */
export function ownJson<T>(value: T, refusal: (why: string) => Error): T {
  const made = copied(value, 0);
  if (made !== NOT_JSON) return made as T;
  leaveAlone(value);
  const why = unwritable(value);
  if (why) throw refusal(why);
  return value;
}

/** Is it JSON, so that a JSON copy would be equal? */
export function isJson(value: unknown): boolean {
  return copied(value, 0) !== NOT_JSON;
}

/** Is it deeply frozen JSON, so that nobody needs a copy? */
export function isFrozenJson(value: unknown, depth = 0): boolean {
  if (isSimple(value)) return true;
  if (typeof value !== 'object' || !Object.isFrozen(value) || depth === DEEPEST) return false;
  if (!Array.isArray(value) && !isPlainObject(value!)) return false;
  for (const item of Object.values(value!)) if (!isFrozenJson(item, depth + 1)) return false;
  return true;
}

/** Why a value cannot be written as JSON, if so. Values that JSON changes or leaves out are fine. */
export function unwritable(value: unknown): string | undefined {
  if (typeof value !== 'bigint' && (typeof value !== 'object' || value === null)) return undefined;
  try {
    const json: string | undefined = JSON.stringify(value);
    const tooDeep = json !== undefined && depthOf(json, DEEPEST) > DEEPEST;
    return tooDeep ? `it is nested more than ${DEEPEST} levels deep` : undefined;
  } catch (error) {
    return messageOf(error).split('\n')[0];
  }
}

type Refusal = (name: string, flaw: Flaw) => AlliumError;

/** What in a value is not JSON, and where, as code would write it. */
export interface Flaw {
  readonly at: string;
  readonly what: string;
}

const NOT_JSON = Symbol('not JSON');

/** Every write of every turn goes through here, so it doesn't track where it is. A value that is too deep may be a cycle. */
function copied(value: unknown, depth: number): unknown {
  if (isSimple(value)) return value;
  if (typeof value !== 'object' || depth === DEEPEST) return NOT_JSON;
  if (Array.isArray(value)) return copiedList(value, depth + 1);
  return isPlainObject(value!) ? copiedObject(value, depth + 1) : NOT_JSON;
}

function isSimple(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}

function copiedList(list: readonly unknown[], depth: number): unknown {
  const out = [...list];
  for (let i = 0; i < out.length; i++) {
    const made = copied(out[i], depth);
    if (made === NOT_JSON) return NOT_JSON;
    if (made !== out[i]) out[i] = made;
  }
  return Object.freeze(out);
}

function copiedObject(value: Record<string, unknown>, depth: number): unknown {
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === undefined) continue;
    const made = copied(item, depth);
    if (made === NOT_JSON) return NOT_JSON;
    // An assignment to `__proto__` would set the prototype.
    if (key !== '__proto__') out[key] = made;
    else Object.defineProperty(out, key, { value: made, enumerable: true });
  }
  return Object.freeze(out);
}

function noCellValue(cell: string, { at, what }: Flaw): AlliumError {
  return new AlliumError(
    'INVALID_STATE',
    `State cell "${cell}" takes JSON values only, got ${what}${at && ` at ${at}`}. Store plain data.`,
    { data: { cell, path: at } },
  );
}

/** The first thing in a value that is not JSON. `above` are the objects it is inside. */
function flawIn(value: unknown, at: string, above: readonly object[]): Flaw | undefined {
  if (isSimple(value)) return undefined;
  if (typeof value !== 'object') return { at, what: shown(value) };
  if (above.includes(value!)) return { at, what: 'a cycle' };
  const list = Array.isArray(value);
  if (!list && !isPlainObject(value!)) return { at, what: kindOf(value!) };
  if (above.length === DEEPEST) return { at: '', what: `something more than ${DEEPEST} levels deep` };
  const inside = [...above, value!];
  const items = list ? [...value].entries() : Object.entries(value!);
  for (const [key, item] of items) {
    if (item === undefined && !list) continue;
    const flaw = flawIn(item, list ? `${at}[${key}]` : `${at}.${key}`, inside);
    if (flaw) return flaw;
  }
  return undefined;
}

/** Names an instance of a class in a sentence. Generators have a tag instead of a class. */
export function kindOf(value: object): string {
  const own: unknown = value.constructor?.name;
  const name =
    typeof own === 'string' && own !== '' ? own : Object.prototype.toString.call(value).slice(8, -1);
  return name === 'Object' ? 'an object of a class' : `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}

// ── Copies that are not frozen ───────────────────────────────────────────────────────────────────────────────

/**
 * A deep copy of plain objects and lists. Class instances are shared, because only their authors know how to copy them. Frozen
 * JSON is shared too.
 */
export function eventData<T>(value: T): T {
  return isFrozenJson(value) ? value : copyOf(value);
}

/** Always a copy, which the caller may change. */
export function copyOf<T>(value: T): T {
  const copies = new Map<object, unknown>();
  const made: Record<string, unknown>[] = [];
  const copied = (item: unknown): unknown => {
    if (typeof item !== 'object' || item === null) return item;
    if (!Array.isArray(item) && !isPlainObject(item)) {
      leaveAlone(item);
      return item;
    }
    const known = copies.get(item);
    if (known !== undefined) return known;
    const copy = (Array.isArray(item) ? [...item] : { ...item }) as Record<string, unknown>;
    copies.set(item, copy);
    made.push(copy);
    return copy;
  };
  const copy = copied(value);
  // The list grows while we walk it, so there is no recursion, however deep the value is.
  for (const one of made) for (const key in one) one[key] = copied(one[key]);
  return copy as T;
}
