// The documentation checks, tried on small repositories made for the purpose.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkDocs } from '../scripts/fences.mjs';
import { fencesOf } from '../scripts/markdown.mjs';
import { emptyProject } from '../scripts/packed-project.mjs';

const fence = (info: string, ...lines: string[]) => [`\`\`\`${info}`, ...lines, '```'].join('\n');

describe('fencesOf', () => {
  it('gives language, flags, code and the line the code begins on', () => {
    expect(fencesOf(`# Title\n\n${fence('ts no-run', 'let a = 1;', 'a++;')}\n`)).toEqual([
      { language: 'ts', flags: ['no-run'], code: 'let a = 1;\na++;', line: 4 },
    ]);
  });

  it('takes the indentation off fences in lists and quotes', () => {
    const page = '- item\n\n  ```js\n  if (a) {\n    b();\n  }\n  ```\n\n> ```sh\n> ls\n> ```\n';
    expect(fencesOf(page).map(({ code }) => code)).toEqual(['if (a) {\n  b();\n}', 'ls']);
  });

  it('keeps shorter fences inside longer ones as their text', () => {
    expect(fencesOf('````md\n```ts\nlet a;\n```\n````')).toMatchObject([
      { language: 'md', code: '```ts\nlet a;\n```' },
    ]);
  });
});

describe('checkDocs', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  async function check(files: Record<string, string>) {
    const root = mkdtempSync(join(tmpdir(), 'allium-docs-'));
    folders.push(root);
    for (const [path, text] of Object.entries({ 'package.json': '{"scripts":{"check":"true"}}', ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return await checkDocs({ root, project: async () => emptyProject(), timeout: 10_000 });
  }

  it('accepts pages that are right', async () => {
    const report = await check({
      'README.md': [
        '# Title',
        '[guide](docs/guide.md#how-it-runs) [here](#title) [away](https://example.org/nowhere) `npm run check`',
        fence('sh', 'npm run check # all of `scripts/`'),
        fence(
          'ts output',
          `import { z } from 'zod';`,
          `const n: number = z.number().parse(await Promise.resolve(2));`,
          `console.log(n, 'lines\\n');`,
        ),
        fence('text', '2 lines'),
        fence('js', `import { readFileSync } from 'node:fs';`, 'readFileSync(new URL(import.meta.url));'),
        fence('cjs', `require('node:fs');`),
        fence('ts no-run', 'throw new Error("not run");'),
        fence('json', '{ not checked }'),
        fence('ts excerpt=scripts/loop.ts', 'while (true) {', '  step();', '}'),
        '`scripts/*.ts`, `scripts/<name>.ts`, `./scripts/yours.ts` and `application/json`',
      ].join('\n\n'),
      'docs/guide.md': '## How it runs\n\nSee [the readme](../README.md).',
      'scripts/loop.ts': 'function loop() {\n  while (true) {\n    step();\n  }\n}\n',
    });
    expect(report.failures).toEqual([]);
    expect(report).toMatchObject({ pages: 2, snippets: 5, ran: 3 });
  });

  it('names the page and line of a type error, and still runs the other fences', async () => {
    const { failures, ran } = await check({
      'README.md': `# A\n\n${fence('ts', 'const a = 1;', 'const b: string = a;')}\n\n${fence('ts', 'const a = 1;')}\n`,
    });
    expect(failures).toEqual([
      `README.md:5:7 error TS2322: Type 'number' is not assignable to type 'string'.`,
    ]);
    expect(ran).toBe(1);
  });

  it('names the page and line of a fence that throws', async () => {
    const { failures } = await check({
      'docs/a.md': fence('ts', 'type A = 1;', 'function f(): A {', `  throw new Error('oh');`, '}', 'f();'),
    });
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatch(/^docs\/a\.md:2 exited with 1\./);
    expect(failures[0]).toContain('docs/a.md:4');
  });

  it('compares what a fence prints with what the page shows', async () => {
    const { failures } = await check({
      'README.md': `${fence('js output', `console.log('one');`)}\n${fence('text', 'two')}`,
    });
    expect(failures).toEqual([
      'README.md:2 printed something else than the page shows.\n--- the page\ntwo\n--- printed\none',
    ]);
  });

  it.each([
    [
      'an output that is not shown',
      fence('ts output', ''),
      'README.md:2 has a fence marked `output`, but no `text` fence',
    ],
    ['a flag nobody knows', fence('ts norun', ''), 'README.md:2 has a fence marked `norun`'],
    [
      'a package that is not here',
      fence('ts no-run', '', `import 'left-pad';`),
      'README.md:3 imports left-pad',
    ],
    [
      'a quotation of nothing',
      fence('ts excerpt=a.ts', 'let a;'),
      'README.md:2 quotes a.ts, which does not exist',
    ],
    [
      'a wrong quotation',
      fence('ts excerpt=docs/a.ts', 'let b;'),
      'README.md:2 quotes docs/a.ts, but these lines',
    ],
    ['a link to nowhere', '[a](docs/b.md)', 'README.md:1 links to docs/b.md: no such file'],
    ['a reference to nowhere', '[a]\n\n[a]: docs/b.md', 'README.md:3 links to docs/b.md: no such file'],
    ['a missing heading', '[a](#b)', 'README.md:1 links to #b: no such heading in README.md'],
    ['an unknown script', '`npm run chekc`', 'README.md:1 names the npm script `chekc`'],
    [
      'an unknown script in a fence',
      fence('sh', 'npm ci', 'npm start'),
      'README.md:3 names the npm script `start`',
    ],
    ['a path that is gone', 'see `docs/b.ts:12`', 'README.md:1 names docs/b.ts, which does not exist'],
    ['a file of a folder that is gone', 'see `lib/b.ts`', 'README.md:1 names lib/b.ts, which does not exist'],
  ])('catches %s', async (_, page, message) => {
    const { failures } = await check({ 'README.md': page, 'docs/a.ts': 'let a;' });
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain(message);
  });
});
