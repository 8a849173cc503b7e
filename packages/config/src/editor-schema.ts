/** The JSON Schema of config files, as it is written to `allium.schema.json`. Nothing else loads this. */
import type { JsonSchema } from 'allium';
import { type Kind, optionsSchemaOf, registered } from 'allium/registry';
import { MCP, PLAIN, table, text } from './schema.js';

/** Descriptions of the options of each middleware. */
export type Descriptions = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * Makes the JSON Schema of `allium.toml` and `allium.json`. It has the options of what comes with Allium and, through
 * `mcp`, those of `@allium/mcp`; those of plugins are checked when they are loaded.
 */
export async function editorSchema(descriptions: Descriptions, mcp: McpFields): Promise<JsonSchema> {
  const all = await Promise.all(KINDS.map((kind) => builtIn(kind, descriptions)));
  const known = all.flat();
  const named = (kind: Kind) => namesOf(known.filter((one) => one.kind === kind));
  const modules = {
    anyOf: [
      { ...text, description: 'A module of yours, such as ./tools.mjs, or a registered name.' },
      use(text, {}, true),
    ],
  };
  const allium = {
    ...PLAIN,
    model: {
      description: 'offline, anthropic/…, openai/…, google/…, openai-compatible/…@address',
      ...named('model'),
    },
    store: { description: 'Where sessions are kept. Default: memory', ...named('store') },
    tools: { type: 'array', items: modules },
    observers: { type: 'array', items: modules },
    middleware: table({
      chain: { description: 'The first is the outermost.', type: 'array', items: named('middleware') },
    }),
    mcp: { ...MCP, additionalProperties: serverSchema(mcp, descriptions.mcp) },
    plugins: {
      description: 'Options by name.',
      type: 'object',
      properties: Object.fromEntries(known.map(({ name, at }) => [name, { $ref: `#/$defs/${at}` }])),
      additionalProperties: { type: 'object' },
    },
  };
  return withVariables({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Allium',
    description: 'An agent of Allium. Written by @allium/config from its code.',
    type: 'object',
    properties: { $schema: text, allium: table(allium) },
    required: ['allium'],
    additionalProperties: false,
    $defs: Object.fromEntries(known.map(({ at, optionsSchema }) => [at, optionsSchema])),
  }) as JsonSchema;
}

/** The fields of `mcp()`. Those that are code have no place in a file. */
export type McpFields = Readonly<Record<string, { readonly schema?: JsonSchema }>>;

function serverSchema(fields: McpFields, texts: Descriptions[string] | undefined): JsonSchema {
  const { name: _, ...rest } = fields;
  const known = Object.entries(rest).flatMap(([name, { schema }]) =>
    schema === undefined || schema['x-code'] ? [] : [[name, schema]],
  );
  const schema = { type: 'object', properties: Object.fromEntries(known), additionalProperties: false };
  return described(schema, texts);
}

const KINDS = ['middleware', 'model', 'store'] as const;

interface BuiltIn {
  readonly kind: Kind;
  readonly name: string;
  readonly optionsSchema: JsonSchema | undefined;
  /** Where the schema keeps its options. */
  readonly at: string;
}

async function builtIn(kind: Kind, descriptions: Descriptions): Promise<readonly BuiltIn[]> {
  const names = registered(kind).flatMap(({ name, builtIn }) => (builtIn ? [name] : []));
  return Promise.all(
    names.map(async (name) => {
      const schema = (await optionsSchemaOf(kind, name)) as JsonSchema | undefined;
      const texts = kind === 'middleware' ? descriptions[name] : undefined;
      return { kind, name, optionsSchema: schema && described(schema, texts), at: `${kind}-${name}` };
    }),
  );
}

function described(schema: JsonSchema, texts: Readonly<Record<string, string>> = {}): JsonSchema {
  const options = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const properties = options.map(([name, one]) => [
    name,
    texts[name] ? { description: texts[name], ...one } : one,
  ]);
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** A name, known or of a plugin; or a name with options. The options of known names are known, too. */
function namesOf(known: readonly BuiltIn[]): object {
  const others = use({ ...text, not: { anyOf: known.map(({ name }) => nameOf(name)) } }, {}, true);
  const options = known.map(({ name, optionsSchema, at }) => {
    const { properties = {}, additionalProperties = true } = (optionsSchema ?? {}) as JsonSchema;
    const references = Object.keys(properties as object).map((key) => [
      key,
      { $ref: `#/$defs/${at}/properties/${key}` },
    ]);
    return use(nameOf(name), Object.fromEntries(references), additionalProperties);
  });
  return { anyOf: [{ ...text, examples: known.map(({ name }) => name) }, ...options, others] };
}

/** Names of models continue after a slash. */
function nameOf(name: string): object {
  return { type: 'string', pattern: `^${name}(/|$)` };
}

/** `{ use, …options }` */
function use(name: object, options: object, additionalProperties: unknown): object {
  const properties = { use: name, as: { description: 'Its name in the plan.', ...text }, ...options };
  return { type: 'object', properties, required: ['use'], additionalProperties };
}

const VARIABLE = { type: 'string', pattern: '^\\$\\{' };

/** A variable may stand for any number, switch or choice. */
function withVariables(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withVariables);
  if (typeof value !== 'object' || value === null) return value;
  const schema = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withVariables(member)]),
  );
  const scalar = ['number', 'integer', 'boolean'].includes(schema.type as string);
  if (!scalar && !Array.isArray(schema.enum)) return schema;
  const { description, ...rest } = schema;
  return { ...(description !== undefined && { description }), anyOf: [rest, VARIABLE] };
}
