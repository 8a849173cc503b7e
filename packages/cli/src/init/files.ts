/** What `allium init` writes. */

export interface Choices {
  readonly model: string;
  readonly store: 'sqlite' | 'file' | 'memory';
  readonly middleware: readonly MiddlewareName[];
  /** An example of a tool. */
  readonly tool: boolean;
}

/** What the list offers; each line is one entry of the chain, in the order they make sense. */
export const MIDDLEWARE = {
  'max-turns': {
    label: 'max-turns',
    hint: 'ends a run after 20 turns',
    line: '{ use = "max-turns", turns = 20 }',
  },
  stopwatch: { label: 'stopwatch', hint: 'times every call', line: '"stopwatch"' },
  retry: { label: 'retry', hint: 'tries failed model calls again', line: '"retry"' },
  'tool-retry': {
    label: 'retry for tools',
    hint: 'those that are declared idempotent',
    line: '{ use = "retry", as = "tool-retry", on = "tool", attempts = 2 }',
  },
  cache: { label: 'cache', hint: 'identical requests are answered once', line: '"cache"' },
  approval: { label: 'approval', hint: 'asks before tools run', line: '"approval"' },
} as const;

export type MiddlewareName = keyof typeof MIDDLEWARE;

export const DEFAULTS: Choices = {
  model: 'offline',
  store: 'sqlite',
  middleware: ['max-turns', 'retry'],
  tool: true,
};

/** Path → text, in the order they are written. */
export function filesFor(choices: Choices, versions: Readonly<Record<string, string>>): Map<string, string> {
  const files = new Map<string, string>();
  files.set('allium.toml', configText(choices));
  if (choices.tool) files.set('tools.mjs', TOOL);
  files.set('package.json', manifestText(versions));
  return files;
}

const STORES = {
  sqlite: 'store = { use = "sqlite", path = ".allium/sessions.db" }',
  file: 'store = { use = "file", dir = ".allium/sessions" }',
  memory: 'store = "memory" # nothing is kept',
} as const;

function configText({ model, store, middleware, tool }: Choices): string {
  const chain = (Object.keys(MIDDLEWARE) as MiddlewareName[]).filter((name) => middleware.includes(name));
  return `#:schema ./node_modules/@allium/config/allium.schema.json
# An Allium agent. \`allium explain\` shows what it comes to, \`allium doctor\` what is missing.

[allium]
model = ${JSON.stringify(model)}
systemPrompt = "You are a helpful assistant. Be brief."
${STORES[store]}
${tool ? 'tools = ["./tools.mjs"]\n' : ''}
[allium.middleware]
# The first is the outermost.
chain = [
${chain.map((name) => `  ${MIDDLEWARE[name].line},\n`).join('')}]

# Options of a middleware can also stand apart:
# [allium.plugins.retry]
# attempts = 5
`;
}

const TOOL = `// Tools of the agent: everything this module exports.
import { tool } from 'allium';

// Any Standard Schema does, z.object({ text: z.string() }) of zod for example. This one is written by hand.
const input = {
  '~standard': {
    version: 1,
    vendor: 'by-hand',
    validate: (value) =>
      typeof value?.text === 'string' ? { value } : { issues: [{ message: 'Expected { text }.' }] },
    jsonSchema: {
      input: () => ({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }),
    },
  },
};

export const countWords = tool({
  name: 'count_words',
  description: 'Counts the words of a text.',
  input,
  idempotent: true,
  execute: ({ text }) => \`\${text.split(/\\s+/).filter(Boolean).length} words\`,
});
`;

const PROVIDERS: Readonly<Record<string, string>> = {
  anthropic: '@ai-sdk/anthropic',
  openai: '@ai-sdk/openai',
  google: '@ai-sdk/google',
  'openai-compatible': '@ai-sdk/openai-compatible',
};

/** Packages the choices need beside allium itself. */
export function packagesFor({ model, store }: Choices, nodeHasSqlite: boolean): string[] {
  const provider = PROVIDERS[model.slice(0, Math.max(0, model.indexOf('/')))];
  return [
    ...(provider ? ['@allium/ai-sdk', provider] : []),
    ...(store === 'sqlite' && !nodeHasSqlite ? ['libsql'] : []),
  ];
}

function manifestText(versions: Readonly<Record<string, string>>): string {
  const manifest = {
    name: 'my-agent',
    private: true,
    type: 'module',
    scripts: { start: 'allium chat' },
    dependencies: { '@allium/cli': `^${versions['@allium/cli']}`, allium: `^${versions.allium}` },
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
