/** Writes a first plugin: a package whose tests already check the laws of middleware. */
import fs, { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolder, pathError } from 'allium/kit';
import { ConfigError } from './config-error.js';
import { PREFIXES } from './plugins.js';
import type { ScaffoldedPlugin, ScaffoldOptions } from './types.js';

/** The version of Allium that a new plugin is written for. */
const ALLIUM = '^0.1.0';

/**
 * Writes `<dir>/allium-mw-<name>`. Nothing is overwritten: it is an error if the folder exists.
 *
 * @example
 * const { folder } = await scaffoldPlugin('.', 'word-filter');
 */
export async function scaffoldPlugin(
  dir: string,
  name: string,
  options: ScaffoldOptions = {},
): Promise<ScaffoldedPlugin> {
  const { type = 'middleware' } = options;
  if (type !== 'middleware')
    throw new ConfigError(
      'INVALID_OPTION',
      `Expected \`type\` to be 'middleware', got ${JSON.stringify(type)}.`,
    );
  const plain =
    typeof name === 'string' && name.startsWith(PREFIXES[type]) ? name.slice(PREFIXES[type].length) : name;
  if (typeof plain !== 'string' || !/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(plain))
    throw new ConfigError(
      'INVALID_OPTION',
      `Expected the name of a plugin to be lower-case words with dashes, such as word-filter, got ${JSON.stringify(name)}.`,
    );
  const packageName = `${PREFIXES[type]}${plain}`;
  const folder = join(resolve(dir), packageName);
  if (existsSync(folder))
    throw new ConfigError('INVALID_OPTION', `${folder} already exists. Choose another name, or remove it.`);
  const files = filesOf(packageName, plain);
  try {
    makeFolder(fs, dirname, folder);
    for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);
  } catch (error) {
    throw pathError('The new plugin', folder, error);
  }
  return { folder, package: packageName, files: Object.keys(files) };
}

function filesOf(packageName: string, name: string): Record<string, string> {
  const factory = name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return {
    'package.json': `${JSON.stringify(manifest(packageName, name), null, 2)}\n`,
    'index.js': source(name, factory),
    'index.test.js': tests(name, factory),
    'README.md': readme(packageName, name),
    '.gitignore': 'node_modules/\n',
  };
}

function manifest(packageName: string, name: string): object {
  return {
    name: packageName,
    version: '0.1.0',
    description: `The middleware ${name} for Allium.`,
    type: 'module',
    exports: { '.': './index.js', './package.json': './package.json' },
    files: ['index.js'],
    keywords: ['allium', 'allium-plugin'],
    allium: { type: 'middleware', name },
    scripts: { test: 'node --test' },
    engines: { node: '>=20.19' },
    peerDependencies: { allium: ALLIUM },
    devDependencies: { allium: ALLIUM },
  };
}

function source(name: string, factory: string): string {
  return `// What this middleware does, in one sentence.

import { defineMiddleware } from 'allium';

/** What may stand in a config file. It is checked before the function below is called. */
export const optionsSchema = {
  type: 'object',
  properties: {
    note: { type: 'string', description: 'Added to the system prompt. Default: nothing' },
  },
  additionalProperties: false,
};

/**
 * Adds a note to the system prompt. Replace it with what you need: the README of allium tells which hooks
 * there are.
 *
 * @param {{ readonly note?: string }} [options]
 */
export default function ${factory}({ note = '' } = {}) {
  return defineMiddleware({
    name: '${name}',
    transformSystemPrompt: (prompt) => (note === '' ? prompt : \`\${prompt} \${note}\`.trim()),
  });
}
`;
}

function tests(name: string, factory: string): string {
  return `import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Agent } from 'allium';
import { scriptedModel, testMiddleware } from 'allium/testing';
import ${factory} from './index.js';

// The laws every middleware keeps: it leaves alone what is not its business, streams as it runs, and lets errors,
// stops and aborts through. One test each. Where yours breaks one on purpose, say so with \`changes\`, \`handles\` or \`skip\`.
testMiddleware(() => ${factory}(), { name: '${name}', describe, it });

describe('${name}', () => {
  it('adds its note to the system prompt', async () => {
    const model = scriptedModel(['Hello.']);
    const agent = new Agent({ model, systemPrompt: 'Be kind.', middleware: [${factory}({ note: 'Be brief.' })] });
    await agent.run('Hi');
    assert.equal(model.requests[0]?.systemPrompt, 'Be kind. Be brief.');
  });
});
`;
}

function readme(packageName: string, name: string): string {
  return `# ${packageName}

What it is for, in a sentence.

\`\`\`sh
npm install ${packageName}
\`\`\`

\`\`\`toml
[allium.middleware]
chain = ["${name}"]

[allium.plugins.${name}]
note = "Be brief."
\`\`\`

| option | default | meaning |
|---|---|---|
| \`note\` | nothing | added to the system prompt |
`;
}
