// What a user gets: every entry of `exports` loads from the packed tarball, by import and by require, with its types.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packedProject } from '../scripts/packed-project.mjs';
import { alliumFolder, tsc } from '../scripts/repository.mjs';
import { mustRun, runCommand } from '../scripts/run-command.mjs';

type Manifest = { exports: Record<string, string | { types: string; default: string }> };

describe('the packed package', () => {
  let project: Awaited<ReturnType<typeof packedProject>>;
  let installed: string;
  let manifest: Manifest;
  let specifiers: string[];

  beforeAll(async () => {
    project = await packedProject();
    installed = join(project.folder, 'node_modules/allium');
    manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    specifiers = expandExports(manifest, installed);
  });

  afterAll(() => project?.remove());

  it('brings the sources’ middleware, models and stores, all of them and nothing else', () => {
    for (const kind of ['middleware', 'models', 'stores']) {
      const packed = specifiers
        .filter((name) => name.startsWith(`allium/${kind}/`))
        .map((name) => name.split('/')[2]);
      expect(packed.sort(), kind).toEqual(foldersIn(join(alliumFolder, 'src', kind)).sort());
    }
  });

  it('holds the build, README and licence, and neither tests nor build state', () => {
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => /\.test(-d)?\.|tsbuildinfo|fixtures/.test(file))).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'package.json', join('dist', 'index.js')]),
    );
  });

  it('loads every entry with import()', async () => {
    const program = `for (const name of ${JSON.stringify(specifiers)}) console.log(name, Object.keys(await import(name)).length > 0);`;
    expect(await lines('import.mjs', program)).toEqual(specifiers.map((name) => `${name} true`));
  });

  it('loads every entry with require(), where node can require ES modules', async () => {
    const program = `
      const { require_module: can } = process.features;
      for (const name of ${JSON.stringify(specifiers)}) console.log(name, !can || Object.keys(require(name)).length > 0);`;
    expect(await lines('require.cjs', program)).toEqual(specifiers.map((name) => `${name} true`));
  });

  it('brings the types of every entry, to ES modules and to CommonJS alike', async () => {
    project.link('@types/node');
    const body = specifiers
      .map((name, index) => `import * as entry${index} from '${name}';\nvoid entry${index};`)
      .join('\n');
    for (const file of ['types.mts', 'types.cts']) writeFileSync(join(project.folder, file), body);
    // Without skipLibCheck: a declaration file that names something the user does not have is a broken one.
    const options =
      '--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --module nodenext --target es2023 --lib es2023 --types node --pretty false';
    const args = [tsc, ...options.split(' '), '--ignoreConfig', 'types.mts', 'types.cts'];
    const { code, stdout } = await runCommand(process.execPath, args, { cwd: project.folder });
    expect(stdout).toBe('');
    expect(code).toBe(0);
  });

  it('gives publint nothing to complain about', async () => {
    const tarball = readFileSync(project.tarball);
    const { messages, pkg } = await publint({
      pack: {
        tarball: tarball.buffer.slice(
          tarball.byteOffset,
          tarball.byteOffset + tarball.byteLength,
        ) as ArrayBuffer,
      },
      level: 'warning',
    });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  async function lines(file: string, program: string): Promise<string[]> {
    writeFileSync(join(project.folder, file), program);
    const { stdout } = await mustRun(process.execPath, [file], { cwd: project.folder });
    return stdout.trim().split('\n');
  }
});

/** The import specifiers `exports` stands for; a `*` is replaced by what is there. */
function expandExports({ exports }: Manifest, installed: string): string[] {
  const modules = Object.entries(exports).filter(([name]) => name !== './package.json');
  return modules.flatMap(([name, target]) => {
    const specifier = `allium${name.slice(1)}`;
    const file = typeof target === 'string' ? target : target.default;
    const [before = '', after = ''] = file.split('*');
    if (!file.includes('*')) return [specifier];
    const there = foldersIn(join(installed, before)).filter((folder) =>
      existsSync(join(installed, before, folder + after)),
    );
    return there.map((folder) => specifier.replace('*', folder));
  });
}

function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}
