/** What a JSON Schema says about a value: references followed, parts joined, choices listed, and what fits it. */
import type { JsonSchema } from '../../kernel/model.js';

/** Inside a schema, `true` and `false` are schemas, too. They say nothing about a value. */
export type Subschema = JsonSchema | boolean;

/** References and choices that lead no further end here. */
const DEEPEST = 20;

/** The schema with what its `$ref` and `allOf` say. The parts stay in `allOf`, for a value has to fit each of them. */
export function whole(schema: Subschema, root: JsonSchema, depth = 0): JsonSchema {
  if (typeof schema === 'boolean' || depth > DEEPEST) return {};
  const { $ref, allOf = [], ...own } = schema as JsonSchema & { readonly allOf?: readonly Subschema[] };
  const parts = [...(typeof $ref === 'string' ? [target($ref, root)] : []), ...allOf];
  if (parts.length === 0) return typed(schema);
  const wholes = parts.map((part) => whole(part, root, depth + 1));
  return typed({ ...wholes.reduce(joined, own), allOf: wholes });
}

/** The schemas of which a value has to fit one, each with what is said beside them. */
export function choicesOf(schema: JsonSchema, root: JsonSchema, depth = 0): readonly JsonSchema[] {
  const { anyOf, oneOf, ...beside } = schema;
  const choices = (anyOf ?? oneOf) as readonly Subschema[] | undefined;
  if (choices !== undefined && depth <= DEEPEST)
    return choices.flatMap((one) => choicesOf(typed(joined(whole(one, root), beside)), root, depth + 1));
  return Array.isArray(schema.type) ? schema.type.map((type) => ({ ...schema, type })) : [schema];
}

/** The places of a tuple, and what comes behind them. A list has no places. */
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

/** Not the 30th of February, which `Date` takes for the 2nd of March. */
function isDay(value: string): boolean {
  const day = value.slice(0, 10);
  const date = new Date(day);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(value);
  } catch {
    // No pattern: whoever validates with it says so.
    return true;
  }
}

function partsOf(schema: JsonSchema): readonly JsonSchema[] {
  return (schema.allOf ?? []) as readonly JsonSchema[];
}

/** What two schemas say together. Where both say something, the first is right. */
function joined(a: JsonSchema, b: JsonSchema): JsonSchema {
  const { properties = {}, required = [] } = a as ObjectSchema;
  const both: Record<string, unknown> = { ...b, ...a };
  if (both.properties) both.properties = { ...(b.properties as object), ...properties };
  if (both.required) both.required = [...required, ...((b as ObjectSchema).required ?? [])];
  return both;
}

interface ObjectSchema {
  readonly properties?: object;
  readonly required?: readonly string[];
}

/** The type that goes without saying. */
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
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? at[key as never] : undefined;
  }
  return (at ?? true) as Subschema;
}
