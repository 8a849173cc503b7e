/**
 * What a JSON Schema says about a value: follows references, joins parts, lists choices, and checks whether a value
 * fits.
 */

import type { JsonSchema } from '../../index.js';

/** Inside a schema, `true` and `false` are schemas, too. They say nothing about a value. */
export type Subschema = JsonSchema | boolean;

/** How many references and choices are followed at once: those that branch at each step would never end. */
const MOST_STEPS = 500;

/** A way through a schema: what it is inside of, and how many steps are left. */
export class Walk {
  readonly #inside = new Set<unknown>();
  #left = MOST_STEPS;

  /** What `go` finds, or `otherwise` if the way leads back to `place` or is too long. */
  into<T>(place: unknown, otherwise: T, go: () => T): T {
    if (this.#left === 0 || this.#inside.has(place)) return otherwise;
    this.#left--;
    this.#inside.add(place);
    const found = go();
    this.#inside.delete(place);
    return found;
  }
}

/**
 * The schema with what its `$ref` and `allOf` say. The parts stay in `allOf`, because a value has to fit each of
 * them.
 */
export function whole(schema: Subschema, root: JsonSchema, walk = new Walk()): JsonSchema {
  if (typeof schema === 'boolean') return {};
  const { $ref, allOf = [], ...own } = schema as JsonSchema & { readonly allOf?: readonly Subschema[] };
  const parts = [...(typeof $ref === 'string' ? [target($ref, root)] : []), ...allOf];
  if (parts.length === 0) return typed(schema);
  return walk.into(schema, {}, () => {
    const wholes = parts.map((part) => whole(part, root, walk));
    return typed({ ...wholes.reduce(joined, own), allOf: wholes });
  });
}

/** The schemas of which a value has to fit one, each with what the schema around them says. */
export function choicesOf(schema: JsonSchema, root: JsonSchema, walk = new Walk()): readonly JsonSchema[] {
  const { anyOf, oneOf, ...beside } = schema;
  const choices = (anyOf ?? oneOf) as readonly Subschema[] | undefined;
  if (choices === undefined)
    return Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : [schema];
  // A choice that leads back to itself adds nothing to the others.
  return walk.into(choices, [], () =>
    choices.flatMap((one) => choicesOf(typed(joined(whole(one, root), beside)), root, walk)),
  );
}

/** The places of a tuple, and what comes after them. A list has no places. */
export function itemsOf({ prefixItems, items = true, additionalItems = true }: JsonSchema): {
  readonly places: readonly Subschema[];
  readonly rest: Subschema;
} {
  // Up to draft 07 a tuple is written as a list of `items`.
  if (Array.isArray(items)) return { places: items, rest: additionalItems as Subschema };
  return { places: (prefixItems ?? []) as readonly Subschema[], rest: items as Subschema };
}

export function fitsNumber(schema: JsonSchema, value: number): boolean {
  const {
    minimum = Number.NEGATIVE_INFINITY,
    exclusiveMinimum = Number.NEGATIVE_INFINITY,
    maximum = Number.POSITIVE_INFINITY,
    exclusiveMaximum = Number.POSITIVE_INFINITY,
    multipleOf,
  } = schema as Record<string, number | undefined>;
  return (
    (schema.type !== 'integer' || Number.isInteger(value)) &&
    value >= minimum &&
    value > exclusiveMinimum &&
    value <= maximum &&
    value < exclusiveMaximum &&
    (multipleOf === undefined || Number.isInteger(value / multipleOf)) &&
    partsOf(schema).every((part) => fitsNumber(part, value))
  );
}

export function fitsText(schema: JsonSchema, value: string): boolean {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema as Record<
    string,
    number | undefined
  >;
  const { length } = [...value];
  return (
    length >= minLength &&
    length <= maxLength &&
    (!Array.isArray(schema.enum) || schema.enum.includes(value)) &&
    (!('const' in schema) || schema.const === value) &&
    (typeof schema.pattern !== 'string' || matches(schema.pattern, value)) &&
    (FORMATS.get(schema.format)?.(value) ?? true) &&
    partsOf(schema).every((part) => fitsText(part, value))
  );
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const TIME = '\\d{2}:\\d{2}:\\d{2}(?:\\.\\d+)?(?:Z|[+-]\\d{2}:\\d{2})';
const MOMENT = new RegExp(`^\\d{4}-\\d{2}-\\d{2}T${TIME}$`);
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** The formats that are known. Others say nothing. */
export const FORMATS: ReadonlyMap<unknown, (value: string) => boolean> = new Map([
  ['email', (value: string) => /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value)],
  ['uri', (value: string) => URL.canParse(value)],
  ['date', (value: string) => DAY.test(value) && isDay(value)],
  ['date-time', (value: string) => MOMENT.test(value) && isDay(value) && !Number.isNaN(Date.parse(value))],
  ['time', (value: string) => new RegExp(`^${TIME}$`).test(value)],
  ['uuid', (value: string) => UUID.test(value)],
]);

/** Not February 30, which `Date` reads as March 2. */
function isDay(value: string): boolean {
  const day = value.slice(0, 10);
  const date = new Date(day);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    // Not a pattern: the validator will say so.
    return true;
  }
}

function partsOf(schema: JsonSchema): readonly JsonSchema[] {
  return (schema.allOf ?? []) as readonly JsonSchema[];
}

/** What two schemas say together. If both say something, the first one counts. */
function joined(a: JsonSchema, b: JsonSchema): JsonSchema {
  const { properties, required = [] } = a as ObjectSchema;
  const both: Record<string, unknown> = { ...b, ...a };
  // If only one has them, they stay the same object, by which a schema that contains itself is recognised.
  if (properties && b.properties) both.properties = { ...(b.properties as object), ...properties };
  if (both.required) both.required = [...required, ...((b as ObjectSchema).required ?? [])];
  return both;
}

interface ObjectSchema {
  readonly properties?: object;
  readonly required?: readonly string[];
}

/** The type, if the schema implies one. */
function typed(schema: JsonSchema): JsonSchema {
  if (schema.type !== undefined) return schema;
  if (schema.properties) return { ...schema, type: 'object' };
  return schema.prefixItems ? { ...schema, type: 'array' } : schema;
}

/** What a reference within the schema points to. */
function target(reference: string, root: JsonSchema): Subschema {
  const [before, ...steps] = reference.split('/');
  if (before !== '#') return true;
  let at: unknown = root;
  for (const step of steps) {
    const key = decoded(step)?.replaceAll('~1', '/').replaceAll('~0', '~');
    const there = key !== undefined && typeof at === 'object' && at !== null && Object.hasOwn(at, key);
    at = there ? at![key as never] : undefined;
  }
  return (at ?? true) as Subschema;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step);
  } catch {
    // Such as "100%": a reference that leads nowhere.
    return undefined;
  }
}
