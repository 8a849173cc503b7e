// Config files as users meet them: read by the packed packages, on every version of Node that is supported.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeProgram } from '../scripts/node-versions.mjs';
import { packedCli } from '../scripts/packed-cli.mjs';
import { cleanEnvironment, runCommand } from '../scripts/run-command.mjs';

const CANARY = 'hunter2-very-secret';
const SECRET = `\${TOKEN}`;

let project: Awaited<ReturnType<typeof packedCli>>;

beforeAll(async () => {
  project = await packedCli();
});
afterAll(() => project?.remove());

describe.each([20, 22, 24])('a config on Node %i', (major) => {
  let node: string | undefined;

  beforeAll(async () => {
    node = await nodeProgram(major);
  });

  /** A folder of its own with these files, and the command line in it. */
  function open(name: string, files: Readonly<Record<string, string>>) {
    const folder = join(project.folder, `${name}-${major}`);
    mkdirSync(folder);
    for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
    const env = { ...cleanEnvironment(), TOKEN: CANARY };
    const allium = (...args: string[]) => runCommand(node!, [project.program, ...args], { cwd: folder, env });
    return { folder, allium };
  }

  it('may be TypeScript where Node runs it, and else says what to do', async ({ skip }) => {
    if (!node) return skip(`Node ${major} could not be installed.`);
    const { allium } = open('typescript', {
      'allium.config.ts': `import { defineConfig } from '@allium/config';
        import { type Middleware, defineMiddleware } from 'allium';
        const polite: Middleware = defineMiddleware({ name: 'polite', beforeModel() {} });
        export default defineConfig({ model: 'offline' as string, middleware: { chain: ['retry', polite] } });`,
    });
    const { code, stdout, stderr } = await allium('run', 'Hello?');
    if (major === 20) {
      expect(code).toBe(3);
      expect(stderr).toMatch(/allium\.config\.ts: Node 20\S+ does not run TypeScript\. Use Node ≥ 22\.18/);
      return;
    }
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('You said: Hello?') });
    expect((await allium('explain')).stdout).toContain('polite');
  });

  it('says where a module of tools is broken', async ({ skip }) => {
    if (!node) return skip(`Node ${major} could not be installed.`);
    const { allium } = open('broken', {
      'allium.toml': '[allium]\nmodel = "offline"\ntools = ["./tools.mjs"]\n',
      'tools.mjs': 'export const a = 1;\nexport const b = ;\n',
    });
    const { stderr } = await allium('run', 'Hello?');
    expect(stderr).toMatch(/allium\.toml:3: `allium\.tools\[0\]`: .*tools\.mjs:2: Unexpected token ';'/);
  });

  it.for<[string, string]>([
    ['a model', 'model = { use = "./leaky.mjs#model", token = "$TOKEN" }'],
    [
      'a middleware',
      'model = "offline"\nmiddleware.chain = ["console-logger", { use = "./leaky.mjs#layer", token = "$TOKEN" }]',
    ],
    ['an observer', 'model = "offline"\nobservers = [{ use = "./leaky.mjs#observer", token = "$TOKEN" }]'],
  ])('keeps a secret that %s throws out of what is printed and written', async ([what, toml], { skip }) => {
    if (!node) return skip(`Node ${major} could not be installed.`);
    const { allium, folder } = open(`secret-${what.split(' ')[1]}`, {
      'allium.toml': `[allium]\nstore = "file"\n${toml.replace('$TOKEN', () => SECRET)}\n`,
      'leaky.mjs': `
        const fail = (token) => { throw new Error('401 for key ' + token); };
        export const model = ({ token }) => ({ provider: 'x', id: 'y', async *stream() { fail(token); } });
        export const layer = ({ token }) => ({ name: 'leaky', wrapModel: () => fail(token) });
        export const observer = ({ token }) => () => fail(token);`,
    });
    const outputs = [
      await allium('run', '--session', 's', 'Hello?'),
      await allium('trace', 's'),
      await allium('trace', 's', '--json'),
      await allium('sessions', 'show', 's'),
    ];
    const printed = outputs.map(({ stdout, stderr }) => stdout + stderr);
    const data = join(folder, '.allium', 'sessions');
    const written = readdirSync(data).map((file) => readFileSync(join(data, file), 'utf8'));
    expect([...printed, ...written].join('\n')).not.toContain(CANARY);
    expect(printed[0]).toContain('401 for key ***');
    if (what === 'an observer') expect(printed[0]!.split('401 for key').length - 1).toBe(1);
    else
      for (const text of [printed[1], printed[2], written.join()]) expect(text).toContain('401 for key ***');
  });
});
