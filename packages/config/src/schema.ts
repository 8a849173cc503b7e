/** What a config file may hold, as JSON Schema. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { JsonSchema } from 'allium';

export const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const amount = { type: 'number', minimum: 0 } as const;
export const table = (properties: Record<string, object>, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
});

/** A time that can be turned off. */
const untilNone = { anyOf: [{ type: 'number', minimum: 1 }, { const: 'none' }] };

/** Parts of both schemas that name nothing. */
export const PLAIN = {
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
  trace: {
    description: 'changes: record who changed what, and keep it with the journal. Default: off',
    enum: ['off', 'changes'],
  },
  queue: table({
    steering: {
      description: 'How many waiting messages are taken in between turns. Default: all',
      enum: ['all', 'one'],
    },
    followUps: {
      description: 'How many waiting messages are taken in when the run is about to end. Default: all',
      enum: ['all', 'one'],
    },
  }),
  tenant: text,
} as const;

/** Options of `mcp()` of `@allium/mcp`, which checks them itself. */
export const MCP = {
  description: 'MCP servers by name: the agent has their tools, called <name>_<tool>. Needs @allium/mcp.',
  type: 'object',
  propertyNames: { pattern: '^[A-Za-z0-9_-]{1,32}$' },
  additionalProperties: { type: 'object' },
} as const;

/** `live`: for a module, which may hold models, stores, tools and middleware themselves. */
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

/** The JSON Schema of `allium.toml` and `allium.json`, for editors: what `@allium/config/schema.json` holds. */
export function configJsonSchema(): JsonSchema {
  return JSON.parse(
    readFileSync(createRequire(import.meta.url).resolve('@allium/config/schema.json'), 'utf8'),
  );
}
