/** The schema of a tool's arguments as providers take it: one object. */
import type { JsonSchema } from 'allium';
import { isObject } from './language-model.js';
import { anyOfOnly } from './response-format.js';

const made = new WeakMap<JsonSchema, JsonSchema>();

/**
 * Anthropic, OpenAI and others refuse a union as the arguments of a tool, and with it the whole request. So its kinds become one
 * object that takes the fields of all of them; further in, they stay unions. It allows more than the tool does, whose own schema judges the arguments.
 */
export function toolSchema(schema: JsonSchema): JsonSchema {
  let known = made.get(schema);
  if (!known) {
    const isOne = schema.type === 'object' && !ABOVE.some((key) => key in schema);
    known = anyOfOnly(isOne ? schema : flattened(schema));
    made.set(schema, known);
  }
  return known;
}

/** What may stand above the fields of an object. */
const ABOVE = ['anyOf', 'oneOf', 'allOf', '$ref'];

interface Fields {
  readonly properties: ReadonlyMap<string, readonly unknown[]>;
  readonly required: ReadonlySet<string>;
}

function flattened(schema: JsonSchema): JsonSchema {
  const rest = Object.fromEntries(Object.entries(schema).filter(([key]) => !ABOVE.includes(key)));
  const { properties, required } = fieldsOf(schema, schema, 0);
  const kinds = kindsOf(schema).map((kind) => [...fieldsOf(kind, schema, 1).properties.keys()].join(', '));
  const help = kinds.length > 1 ? `Give the fields of one kind: ${kinds.join('; or ')}.` : undefined;
  const description = [schema.description, help].filter((text) => text !== undefined).join(' ');
  return {
    ...rest,
    type: 'object',
    ...(description !== '' && { description }),
    properties: Object.fromEntries([...properties].map(([name, all]) => [name, oneOf(all)])),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** The alternatives that differ in more than in what they require. */
function kindsOf({ anyOf, oneOf }: JsonSchema): readonly unknown[] {
  const all = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return all.filter((kind) => isObject(kind) && (kind.properties !== undefined || kind.$ref !== undefined));
}

/** No tool nests its kinds deeper; a schema that refers to itself would never end. */
const DEEPEST = 8;

function fieldsOf(schema: unknown, root: JsonSchema, depth: number): Fields {
  if (!isObject(schema) || depth > DEEPEST) return { properties: new Map(), required: new Set() };
  const inside = (list: unknown) =>
    (Array.isArray(list) ? list : []).map((one) => fieldsOf(one, root, depth + 1));
  const own: Fields = {
    properties: new Map(Object.entries(schema.properties ?? {}).map(([name, value]) => [name, [value]])),
    required: new Set(Array.isArray(schema.required) ? schema.required : []),
  };
  const together = [own, ...inside(schema.allOf), ...inside([referred(schema.$ref, root)])];
  for (const kinds of [inside(schema.anyOf), inside(schema.oneOf)]) {
    if (kinds.length === 0) continue;
    const [first, ...more] = kinds.map(({ required }) => required);
    const required = new Set([...first!].filter((name) => more.every((names) => names.has(name))));
    together.push({ properties: joined(kinds), required });
  }
  return {
    properties: joined(together),
    required: new Set(together.flatMap(({ required }) => [...required])),
  };
}

function joined(all: readonly Fields[]): Fields['properties'] {
  const properties = new Map<string, unknown[]>();
  for (const [name, schemas] of all.flatMap((one) => [...one.properties]))
    properties.set(name, [...(properties.get(name) ?? []), ...schemas]);
  return properties;
}

function referred(ref: unknown, root: JsonSchema): unknown {
  const [, place, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(ref)) ?? [];
  const all = place === undefined ? undefined : root[place];
  return isObject(all) ? all[name!] : undefined;
}

/** One schema for a field that has several. */
function oneOf(all: readonly unknown[]): unknown {
  const different = [...new Map(all.map((schema) => [JSON.stringify(schema), schema])).values()];
  if (different.length === 1) return different[0];
  const values = different.map(valuesOf);
  if (!values.every((list) => list !== undefined)) return { anyOf: different };
  const given = [...new Set(values.flat())];
  const types = [...new Set(given.map((value) => typeof value))];
  return { ...(types.length === 1 && types[0] === 'string' && { type: 'string' }), enum: given };
}

function valuesOf(schema: unknown): readonly unknown[] | undefined {
  if (!isObject(schema)) return undefined;
  if ('const' in schema) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}
