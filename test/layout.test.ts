// The shape of the main package: dependency arrows, no runtime dependency, and what every middleware folder holds.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../scripts/imports.mjs';
import { camelCase, layoutViolations } from '../scripts/layout.mjs';
import { alliumFolder, root } from '../scripts/repository.mjs';
import { shapeViolations, tooLarge } from '../scripts/shape.mjs';
import { middlewareArguments } from './middleware-arguments.js';

const src = join(alliumFolder, 'src');

describe('allium', () => {
  it('keeps its dependency arrows: kernel ← middleware, third-party packages loaded lazily', () => {
    expect(layoutViolations(readSources(src))).toEqual([]);
  });

  it('has a kernel of small rooms, files and functions, without long cycles of files', () => {
    const found = shapeViolations(readSources(src));
    expect(found.filter((one) => !tooLarge.has(one.split(':')[0]!))).toEqual([]);
    // What has become small enough leaves the list.
    expect(found).toHaveLength(tooLarge.size);
  });

  it('has no runtime dependency', () => {
    const manifest = JSON.parse(readFileSync(join(alliumFolder, 'package.json'), 'utf8'));
    expect(manifest.dependencies ?? {}).toEqual({});
    expect(manifest.optionalDependencies ?? {}).toEqual({});
    const required = Object.keys(manifest.peerDependencies ?? {}).filter(
      (name) => !manifest.peerDependenciesMeta?.[name]?.optional,
    );
    expect(required).toEqual([]);
  });

  it('carries the licence of the repository', () => {
    expect(readFileSync(join(alliumFolder, 'LICENSE'), 'utf8')).toBe(
      readFileSync(join(root, 'LICENSE'), 'utf8'),
    );
  });
});

describe.each(middlewareFolders())('src/middleware/%s', (folder) => {
  it('has a kebab-case name', () => {
    expect(folder).toMatch(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/);
  });

  it('holds its code, its test and its README', () => {
    const files = readdirSync(join(src, 'middleware', folder));
    expect(files).toEqual(expect.arrayContaining(['index.ts', 'index.test.ts', 'README.md']));
  });

  it('exports a factory in camelCase that makes a middleware named like the folder', async () => {
    const exported = await load(`middleware/${folder}/index.ts`);
    const factory = exported[camelCase(folder)];
    expect(factory, `index.ts exports no function ${camelCase(folder)}`).toBeTypeOf('function');
    const made = (factory as (...args: readonly unknown[]) => { name?: unknown })(
      ...(middlewareArguments[folder]?.() ?? []),
    );
    expect(made.name).toBe(folder);
  });

  it('is listed in src/middleware/index.ts', async () => {
    const [own, listed] = [await load(`middleware/${folder}/index.ts`), await load('middleware/index.ts')];
    expect(listed).toHaveProperty(camelCase(folder), own[camelCase(folder)]);
  });
});

describe('importsOf', () => {
  it('finds every way of naming another module', () => {
    const code = [
      `import a, { type B } from './static.js';`,
      `import type { C } from './type-only.js';`,
      `import './side-effect.js';`,
      `export { d } from './re-export.js';`,
      `export * as e from './namespace.js';`,
      `import f = require('./import-equals.js');`,
      `const g = await import('./dynamic.js');`,
      'const h = await import(`./template.js`);',
      `const i = require('./required.js');`,
      `type J = import('./in-a-type.js').J;`,
      `type K = typeof import('./typeof.js');`,
      `const l = await import('./' + a);`,
    ].join('\n');
    expect(importsOf('sample.ts', code).map(({ specifier, kind, line }) => [line, kind, specifier])).toEqual([
      [1, 'static', './static.js'],
      [2, 'static', './type-only.js'],
      [3, 'static', './side-effect.js'],
      [4, 'static', './re-export.js'],
      [5, 'static', './namespace.js'],
      [6, 'static', './import-equals.js'],
      [7, 'dynamic', './dynamic.js'],
      [8, 'dynamic', './template.js'],
      [9, 'dynamic', './required.js'],
      [10, 'type', './in-a-type.js'],
      [11, 'type', './typeof.js'],
      [12, 'dynamic', undefined],
    ]);
  });

  it('is not taken in by comments, strings and regular expressions', () => {
    const code = [
      `// import './comment.js'`,
      `const a = "import './string.js'";`,
      `const b = /import('.\\/regex.js')/;`,
    ].join('\n');
    expect(importsOf('sample.ts', code)).toEqual([]);
  });

  it('refuses code it cannot parse', () => {
    expect(() => importsOf('broken.ts', 'import from')).toThrow('broken.ts cannot be parsed');
  });
});

describe('layoutViolations', () => {
  const clean: Record<string, string> = {
    'index.ts': `export * from './kernel/agent.js';`,
    'kernel/agent.ts': `import { step } from './loop/step.js'; export const agent = step;`,
    'kernel/loop/step.ts': `import type { Agent } from '../agent.js'; export const step = 1;`,
    'kernel/agent.test.ts': `import { it } from 'vitest'; import { text } from '../testing/index.js';`,
    'testing/index.ts': `export { agent } from '../index.js';`,
    'middleware/index.ts': `export { cache } from './cache/index.js';`,
    'middleware/cache/index.ts': `import { createHash } from 'node:crypto'; import { agent } from '../../index.js'; import '../../kit/index.js'; import './key.js';`,
    'middleware/cache/key.ts': `import { agent } from '../../index.js'; const lru = await import('lru-cache');`,
    'middleware/retry/index.ts': `export const retry = 1;`,
    'kit/index.ts': `export { agent } from '../kernel/agent.js';`,
    'stores/kit/index.ts': `export { agent } from '../../kit/index.js';`,
    'stores/memory/index.ts': `import { agent } from '../../index.js'; import '../kit/index.js';`,
  };
  const violationsOf = (files: Record<string, string>) =>
    layoutViolations(new Map(Object.entries({ ...clean, ...files })));

  it('accepts a tree that keeps the arrows', () => {
    expect(violationsOf({})).toEqual([]);
  });

  it.each([
    ['the kernel importing another folder', 'kernel/a.ts', `import '../testing/index.js';`],
    [
      'the kernel importing only a type',
      'kernel/a.ts',
      `import type { C } from '../middleware/cache/index.js';`,
    ],
    ['the kernel naming a type of another folder', 'kernel/a.ts', `type T = import('../index.js').T;`],
    ['the kernel re-exporting from outside', 'kernel/a.ts', `export * from '../index.js';`],
    ['the kernel loading lazily from outside', 'kernel/a.ts', `await import('../stores/memory/index.js');`],
    ['the kernel importing a builtin', 'kernel/a.ts', `import { hrtime } from 'node:process';`],
    ['the kernel importing a builtin without its prefix', 'kernel/a.ts', `import fs from 'fs';`],
    ['the kernel loading a package', 'kernel/a.ts', `await import('zod');`],
    [
      'the kernel loading a computed path',
      'kernel/a.ts',
      `export const load = (path: string) => import(path);`,
    ],
    ['a middleware importing another', 'middleware/retry/index.ts', `import '../cache/index.js';`],
    ['a middleware importing the kernel', 'middleware/retry/index.ts', `import '../../kernel/agent.js';`],
    [
      'a middleware importing a type of the kernel',
      'middleware/retry/index.ts',
      `import type { Agent } from '../../kernel/agent.js';`,
    ],
    [
      'a middleware importing the kit of stores',
      'middleware/retry/index.ts',
      `import '../../stores/kit/index.js';`,
    ],
    ['a store importing the kernel', 'stores/memory/index.ts', `import '../../kernel/agent.js';`],
    ['a model importing the kernel', 'models/offline/index.ts', `import '../../kernel/agent.js';`],
    ['a shared folder importing the kernel', 'caching/lru.ts', `import '../kernel/agent.js';`],
    ['the kit importing a middleware', 'kit/a.ts', `import '../middleware/cache/index.js';`],
    ['a middleware importing the test kit', 'middleware/retry/index.ts', `import '../../testing/index.js';`],
    ['a middleware importing a package', 'middleware/retry/index.ts', `import pRetry from 'p-retry';`],
    [
      'a middleware importing a type of a package',
      'middleware/retry/index.ts',
      `import type { A } from 'ajv';`,
    ],
    ['a store importing a middleware', 'stores/memory/index.ts', `import '../../middleware/cache/index.js';`],
    ['the list of middleware doing more', 'middleware/index.ts', `export * from './cache/key.js';`],
    ['the test kit importing the kernel', 'testing/index.ts', `import '../kernel/agent.js';`],
    ['any source importing a package', 'testing/index.ts', `import { it } from 'vitest';`],
    ['any source importing a test', 'testing/index.ts', `import '../kernel/agent.test.js';`],
    ['a path that does not exist', 'kernel/a.ts', `import './nowhere.js';`],
  ])('catches %s', (_, path, code) => {
    const violations = violationsOf({ [path]: `\n${code}` });
    expect(violations).toHaveLength(1);
    expect(violations[0]).toContain(`${path}:2 imports `);
  });

  it.each([
    ['read', 'export const f = (ctx: any) => ctx._run;', '._run'],
    ['taken apart', 'export const f = ({ _call: call }: any) => call;', '_call'],
    ['taken apart under its own name', 'export const f = ({ agent, _of }: any) => [agent, _of];', '_of'],
  ])('catches a private field that is %s outside the kernel', (_, code, field) => {
    const [found, ...more] = violationsOf({ 'middleware/retry/index.ts': `\n${code}` });
    expect(found).toContain(`middleware/retry/index.ts:2 reads ${field}:`);
    expect(more).toEqual([]);
    for (const insider of ['kernel/a.ts', 'kit/a.ts']) expect(violationsOf({ [insider]: code })).toEqual([]);
  });
});

describe('shapeViolations', () => {
  const lines = (count: number) => `${'//\n'.repeat(count)}`;
  const circle = (names: readonly string[]) =>
    names.map((name, i): [string, string] => {
      const next = names[(i + 1) % names.length];
      return [`kernel/run/${name}.ts`, `import type { A } from './${next}.js';`];
    });

  it('accepts what is small enough, and does not count tests or what lies outside the kernel', () => {
    const sources: [string, string][] = [
      ['kernel/run/a.ts', lines(350)],
      ['kernel/run/b.ts', `function f() {\n${lines(58)}}`],
      ['kernel/run/a.test.ts', lines(3000)],
      ['testing/index.ts', lines(3000)],
      ...circle(['x', 'y', 'z']),
    ];
    expect(shapeViolations(new Map(sources))).toEqual([]);
  });

  it.each<[string, [string, string][], string]>([
    ['a long file', [['kernel/run/a.ts', lines(351)]], 'file run/a.ts: 351 lines'],
    [
      'a long function',
      [['kernel/run/a.ts', `class A {\n  go() {\n${lines(59)}  }\n}`]],
      'function go in run/a.ts: 61 lines',
    ],
    [
      'a large room',
      Array.from({ length: 6 }, (_, i) => [`kernel/run/${i}.ts`, lines(340)]),
      'room run: 2040 lines',
    ],
    [
      'a long cycle of types',
      circle(['w', 'x', 'y', 'z']),
      'cycle run/w.ts, run/x.ts, run/y.ts, run/z.ts: 4 files',
    ],
  ])('finds %s', (_, sources, told) => {
    expect(shapeViolations(new Map(sources))).toEqual([told]);
  });
});

function middlewareFolders(): string[] {
  const folder = join(src, 'middleware');
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function readSources(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  return new Map(files.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(folder, path), 'utf8')]));
}

async function load(path: string): Promise<Record<string, unknown>> {
  return await import(pathToFileURL(join(src, path)).href);
}
