/** Copies of JSON values, frozen, with an error that says where a value is that is none. */
import { AlliumError, shown } from './errors.js';

/** A frozen copy of a JSON value; properties that are undefined are left out. Throws for anything else. */
export function toJson<T>(value: T, cell: string): T {
  const made = copied(value, 0);
  // Slowly again for the rest: very deep values, and the error that says where in a value something is wrong.
  return (made === UNUSUAL ? copy(value, cell, [], []) : made) as T;
}

const UNUSUAL = Symbol('unusual');
/** Deeper than this a value may be a cycle. */
const DEEP = 16;

/** Every write of every turn goes through here, so it keeps no record of where it is. */
function copied(value: unknown, depth: number): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : UNUSUAL;
  if (typeof value !== 'object' || depth === DEEP) return UNUSUAL;
  if (Array.isArray(value)) return copiedList(value, depth + 1);
  const proto = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null
    ? copiedObject(value as Record<string, unknown>, depth + 1)
    : UNUSUAL;
}

function copiedList(list: readonly unknown[], depth: number): unknown {
  const out = [...list];
  for (let i = 0; i < out.length; i++) {
    const made = copied(out[i], depth);
    if (made === UNUSUAL) return UNUSUAL;
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
    if (made === UNUSUAL || key === '__proto__') return UNUSUAL;
    out[key] = made;
  }
  return Object.freeze(out);
}

type Path = (string | number)[];

/** `path` is where `value` is, `above` what it is in. */
function copy(value: unknown, cell: string, path: Path, above: object[]): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'object' && !above.includes(value)) {
    const isList = Array.isArray(value);
    const proto = isList ? null : Object.getPrototypeOf(value);
    if (isList || proto === Object.prototype || proto === null) {
      above.push(value);
      const made = isList ? copyList(value, cell, path, above) : copyObject(value, cell, path, above);
      above.pop();
      return Object.freeze(made);
    }
  }
  const at = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  const what = typeof value === 'object' && above.includes(value as object) ? 'a cycle' : kindOf(value);
  throw new AlliumError(
    'INVALID_STATE',
    `State cell "${cell}" takes JSON values only, got ${what}${at && ` at ${at}`}. Store plain data.`,
    {
      data: { cell, path: at },
    },
  );
}

/** Of an object its class, which is what is wrong with it; its content may be long and look like JSON. */
function kindOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return shown(value);
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && name !== ''
    ? `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`
    : 'an object of a class';
}

function copyList(list: readonly unknown[], cell: string, path: Path, above: object[]): unknown[] {
  return list.map((item, i) => {
    path.push(i);
    const made = copy(item, cell, path, above);
    path.pop();
    return made;
  });
}

function copyObject(value: object, cell: string, path: Path, above: object[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    path.push(key);
    own(out, key, copy(item, cell, path, above));
    path.pop();
  }
  return out;
}

/** An assignment to `__proto__` would set the prototype. */
function own(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true });
}
