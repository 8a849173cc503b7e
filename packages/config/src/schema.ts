/** What a config file may hold, as JSON Schema: for checking, and for editors. */
import type { JsonSchema } from 'allium';
import { type Kind, type Registered, registered } from 'allium/registry';

const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const amount = { type: 'number', minimum: 0 } as const;
const table = (properties: Record<string, object>, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
});

/** A time that can be turned off. */
const untilNone = { anyOf: [{ type: 'number', minimum: 1 }, { const: 'none' }] };

/** Parts of both schemas that name nothing. */
const PLAIN = {
  name: { description: "The agent's. Default: agent", type: 'string', minLength: 1 },
  systemPrompt: text,
  limits: table({
    turns: { description: 'Model calls of the loop. Default: 100', ...count },
    depth: { description: 'How deep sub-agents may nest. Default: 8', ...count },
    toolCalls: count,
    tokens: { description: 'Input and output, sub-agents included.', ...amount },
    costUsd: amount,
    timeoutMs: { description: 'Active milliseconds: waiting for a human does not count.', ...amount },
    argsDepth: { description: 'How deep the arguments of a call may be nested. Default: 100', ...count },
    argsChars: { description: 'How long they may be, in characters of JSON. Default: 4000000', ...count },
    modelIdleMs: { description: 'Milliseconds a model may send nothing. Default: 120000', ...untilNone },
    modelMs: { description: 'Milliseconds one model call may take. Default: 600000', ...untilNone },
  }),
  sessionLimits: table({ turns: count, toolCalls: count, tokens: amount, costUsd: amount }),
  settings: table({
    maxOutputTokens: { type: 'integer', minimum: 1 },
    temperature: amount,
    topP: amount,
    stopSequences: { type: 'array', items: text },
    seed: { type: 'integer' },
    toolChoice: {
      anyOf: [{ enum: ['auto', 'none', 'required'] }, table({ tool: text }, { required: ['tool'] })],
    },
    responseSchema: { type: 'object' },
    provider: {
      description: 'Options by provider.',
      type: 'object',
      additionalProperties: { type: 'object' },
    },
    systemMetadata: {
      description: 'Of the system prompt: provider holds options by provider, such as a cache marker.',
      type: 'object',
    },
  }),
  toolChoiceTurns: {
    description: 'In which turns a toolChoice that demands a call holds. Default: first',
    enum: ['first', 'all'],
  },
  toolExecution: { enum: ['parallel', 'sequential'] },
  queue: table({
    steering: { description: 'How many are taken in between turns. Default: all', enum: ['all', 'one'] },
    followUps: { description: 'How many are taken in at a time. Default: all', enum: ['all', 'one'] },
  }),
  tenant: text,
} as const;

/** Options of `mcp()` of `@allium/mcp`, which checks them itself. */
const MCP = {
  description: 'MCP servers by name: the agent has their tools, called <name>_<tool>. Needs @allium/mcp.',
  type: 'object',
  propertyNames: { pattern: '^[A-Za-z0-9_-]{1,32}$' },
  additionalProperties: {
    type: 'object',
    properties: {
      command: { description: 'Starts the server as a program.', ...text },
      args: { type: 'array', items: text },
      env: { type: 'object', additionalProperties: text },
      cwd: text,
      url: { description: 'Address of a server that speaks streamable HTTP.', ...text },
      headers: { type: 'object', additionalProperties: text },
    },
  },
} as const;

/** `live`: of a module, which may hold models, stores, tools and middleware themselves. */
export function checkingSchema(live: boolean): JsonSchema {
  const named = live
    ? {}
    : {
        anyOf: [
          { type: 'string', minLength: 1 },
          {
            type: 'object',
            properties: { use: { type: 'string', minLength: 1 }, as: text },
            required: ['use'],
          },
        ],
      };
  const list = { type: 'array', items: named };
  return table({
    ...PLAIN,
    model: named,
    store: named,
    tools: list,
    observers: list,
    middleware: table({ chain: list }),
    mcp: MCP,
    plugins: { type: 'object', additionalProperties: { type: 'object' } },
  });
}

/**
 * The JSON Schema of `allium.toml` and `allium.json`, for editors. It knows the options of what comes with Allium; those
 * of plugins are checked when they are loaded.
 */
export function configJsonSchema(): JsonSchema {
  const known = KINDS.flatMap((kind) =>
    builtIn(kind).map((one) => ({ ...one, at: definitionOf(kind, one.name) })),
  );
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
    mcp: MCP,
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

const KINDS = ['middleware', 'model', 'store'] as const;

function builtIn(kind: Kind): readonly Registered[] {
  return registered(kind).filter((one) => one.builtIn);
}

/** Where the schema keeps the options of a name. */
function definitionOf(kind: Kind, name: string): string {
  return `${kind}-${name}`;
}

/** A name, of those known or of a plugin; or a name with options. The options of a name that is known are known, too. */
function named(kind: Kind): object {
  const known = builtIn(kind);
  const others = use({ ...text, not: { anyOf: known.map(({ name }) => nameOf(name)) } }, {}, true);
  const options = known.map(({ name, optionsSchema }) => {
    const { properties = {}, additionalProperties = true } = (optionsSchema ?? {}) as JsonSchema;
    const at = `#/$defs/${definitionOf(kind, name)}/properties`;
    const references = Object.keys(properties as object).map((key) => [key, { $ref: `${at}/${key}` }]);
    return use(nameOf(name), Object.fromEntries(references), additionalProperties);
  });
  return { anyOf: [{ ...text, examples: known.map(({ name }) => name) }, ...options, others] };
}

/** Names of models go on after a slash. */
function nameOf(name: string): object {
  return { type: 'string', pattern: `^${name}(/|$)` };
}

/** `{ use, …options }` */
function use(name: object, options: object, additionalProperties: unknown): object {
  const properties = { use: name, as: { description: 'Its name in the plan.', ...text }, ...options };
  return { type: 'object', properties, required: ['use'], additionalProperties };
}

const VARIABLE = { type: 'string', pattern: '^\\$\\{' };

/** Wherever a number, a switch or a choice may stand, so may a variable. */
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
