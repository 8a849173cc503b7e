/** Options that hold models, tools or middleware. A file names these, and so may every caller of `resolveMiddleware`. */

import { AlliumError } from '../kernel/lib/errors.js';
import { CODE, NAMED } from '../kernel/lib/kinds.js';
import type { JsonSchema } from '../kernel/messages/model.js';

/** What options may name. */
export type NamedKind = keyof typeof NAMED;
/** Makes what a name means, or `{ use: 'name', … }`. For tools it may return a list. */
export type MakeNamed = (kind: NamedKind, item: string | { readonly use: string }) => unknown;

const text = { type: 'string' } as const;
/** In a file, code is a module of the user's and one of its exports. */
export const CODE_IN_FILES = {
  type: 'object',
  properties: { import: text, name: text },
  required: ['import'],
  additionalProperties: false,
};
const NAME_IN_FILES = {
  anyOf: [text, { type: 'object', properties: { use: text }, required: ['use'] }, CODE_IN_FILES],
};

/** The schema of options as a file writes them, for editors. */
export function inFiles(schema: unknown): unknown {
  if (schema === CODE) return CODE_IN_FILES;
  if (kindNamed(schema)) return NAME_IN_FILES;
  if (Array.isArray(schema)) return schema.map(inFiles);
  if (!isRecord(schema)) return schema;
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, inFiles(value)]));
}

/** A copy of the options with what the names in them mean. `schema` says where names are. */
export async function withNamed(options: unknown, schema: unknown, make: MakeNamed): Promise<unknown> {
  return replaced(options, schema, make, []);
}

type Path = readonly (string | number)[];

async function replaced(value: unknown, schema: unknown, make: MakeNamed, path: Path): Promise<unknown> {
  if (!isRecord(schema)) return value;
  const kind = kindNamed(schema);
  if (kind) return isName(value) ? made(() => make(kind, value), path) : value;
  if (Array.isArray(value)) {
    const items = value.map((item, index) => replaced(item, schema.items, make, [...path, index]));
    const list = await Promise.all(items);
    return kindNamed(schema.items) === 'tool' ? list.flat() : list;
  }
  if (!isPlain(value)) return value;
  const { properties = {}, additionalProperties } = schema as JsonSchema & {
    readonly properties?: Readonly<Record<string, unknown>>;
  };
  const members = Object.entries(value).map(
    async ([key, member]) =>
      [key, await replaced(member, properties[key] ?? additionalProperties, make, [...path, key])] as const,
  );
  return Object.fromEntries(await Promise.all(members));
}

/** The error of a name says which option it is in. */
async function made(make: () => unknown, path: Path): Promise<unknown> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof AlliumError) || error.data.path !== undefined) throw error;
    const { code, message, cause, data } = error;
    throw new AlliumError(code, message, { cause, data: { ...data, path } });
  }
}

function kindNamed(schema: unknown): NamedKind | undefined {
  const kind = isRecord(schema) ? schema['x-named'] : undefined;
  return typeof kind === 'string' && Object.hasOwn(NAMED, kind) ? (kind as NamedKind) : undefined;
}

function isName(value: unknown): value is string | { readonly use: string } {
  return typeof value === 'string' || (isPlain(value) && typeof value.use === 'string');
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
