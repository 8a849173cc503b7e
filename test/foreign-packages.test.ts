// Built-in middleware have no privileges: copied into packages of their own, outside the repository, they compile against
// the packed `allium` and pass their own tests.

import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importsOf } from '../scripts/imports.mjs';
import { packedProject } from '../scripts/packed-project.mjs';
import { alliumFolder, root, tsc } from '../scripts/repository.mjs';
import { runCommand } from '../scripts/run-command.mjs';

const middleware = join(alliumFolder, 'src/middleware');
/** Name of the package → where its sources are. */
const packages = {
  /** A layer. */
  retry: join(middleware, 'retry'),
  /** Rules, tools and state. */
  'todo-list': join(middleware, 'todo-list'),
  /** Metering of whole runs, with state. */
  budget: join(middleware, 'budget'),
  /** Hooks that change results. */
  'tool-errors': join(middleware, 'tool-errors'),
  /** A guard. */
  'hide-numbers': join(root, 'examples/guard'),
};

let project: Awaited<ReturnType<typeof packedProject>>;

beforeAll(async () => {
  project = await packedProject();
  for (const name of ['@types/node', 'vitest', 'zod', 'fast-check']) project.link(name);
  for (const [name, from] of Object.entries(packages)) copy(name, from);
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    strict: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    // What vitest brings is its own affair; the declarations of allium are checked where they are used.
    skipLibCheck: true,
    types: ['node'],
    rootDir: 'packages',
    outDir: 'compiled',
  };
  writeFileSync(
    join(project.folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['packages'] }),
  );
});

afterAll(() => project?.remove());

describe('middleware of this repository, as packages of somebody else', () => {
  it('import nothing of allium but what it exports', () => {
    for (const name of Object.keys(packages)) {
      const folder = join(project.folder, 'packages', name);
      for (const file of readdirSync(folder).filter((path) => path.endsWith('.ts'))) {
        const specifiers = importsOf(file, readFileSync(join(folder, file), 'utf8')).map(
          (one) => one.specifier,
        );
        expect(
          specifiers.filter((one) => one?.startsWith('..')),
          `${name}/${file}`,
        ).toEqual([]);
      }
    }
  });

  it('compile against the packed declarations', async () => {
    const { code, stdout } = await runCommand(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], {
      cwd: project.folder,
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  });

  it('pass their own tests', async () => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    // Not isolated, and as patient as the tests of the repository.
    const like = ['--maxWorkers=1', '--no-isolate', '--testTimeout=600000'];
    const args = [vitest, 'run', '--root', 'compiled', ...like, '--reporter=json'];
    const { code, stdout, stderr, timedOut } = await runCommand(process.execPath, args, {
      cwd: project.folder,
    });
    expect(timedOut, stdout + stderr).toBe(false);
    const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Report;
    const failed = report.testResults.flatMap(({ message, assertionResults }) => [
      ...(message ? [message] : []),
      ...assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
    ]);
    expect({ code, failed }, stderr).toEqual({ code: 0, failed: [] });
    const tested = new Set(report.testResults.map(({ name }) => name.split(/[\\/]/).at(-2)));
    expect([...tested].sort()).toEqual(Object.keys(packages).sort());
    expect(report.numPassedTests).toBeGreaterThan(100);
  });
});

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** A package with the sources of a middleware: what they import of the repository, they import of `allium`. */
function copy(name: string, from: string): void {
  const folder = join(project.folder, 'packages', name);
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(from).filter((path) => path.endsWith('.ts'))) {
    cpSync(join(from, file), join(folder, file));
    const code = readFileSync(join(folder, file), 'utf8')
      .replaceAll(`'../../index.js'`, `'allium'`)
      .replaceAll(`'../../kit/index.js'`, `'allium/kit'`)
      .replaceAll(`'allium/middleware/${name}'`, `'./index.js'`);
    writeFileSync(join(folder, file), code);
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `foreign-${name}`, type: 'module' }));
}
