// A plugin as a user meets it: packed, installed from its tarball into an empty project, and used by name.

import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packedProject } from '../scripts/packed-project.mjs';
import { root } from '../scripts/repository.mjs';
import { mustRun, runCommand } from '../scripts/run-command.mjs';

const good = "export default () => ({ name: 'x', beforeRun() {} });";
let project: Awaited<ReturnType<typeof packedProject>>;

beforeAll(async () => {
  project = await packedProject(['@allium/config', 'allium-mw-word-filter']);
});
afterAll(() => project?.remove());

/** Runs a module in the project and returns what it prints. */
async function run(program: string): Promise<string> {
  writeFileSync(join(project.folder, 'program.mjs'), program);
  return (await mustRun(process.execPath, ['program.mjs'], { cwd: project.folder })).stdout.trim();
}

function write(path: string, text: string): void {
  const file = join(project.folder, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
}

describe('an installed plugin', () => {
  it('is found by its name, its package, and in other spellings, and works', async () => {
    for (const name of ['word-filter', 'Word_Filter', 'allium-mw-word-filter']) {
      write(
        'allium.toml',
        `[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["retry", { use = "${name}", words = ["drat"] }]\n[allium.plugins.word-filter]\nreplacement = "[gone]"`,
      );
      const printed = await run(`
        import { createAgent, loadConfig } from '@allium/config';
        const { agent, names, close } = await createAgent(await loadConfig());
        const { text } = await agent.run('Drat and draty');
        console.log(names.join(' '), text.split('You said: ')[1].split('\\n')[0]);
        await close();`);
      expect(printed).toBe('retry word-filter [gone] and draty');
    }
  });

  it('has its options checked, with the line they stand on', async () => {
    write(
      'allium.toml',
      '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [\n  { use = "word-filter", words = [] },\n]',
    );
    const printed = await run(`
      import { createAgent, loadConfig } from '@allium/config';
      const error = await createAgent(await loadConfig()).catch((thrown) => thrown);
      console.log(error.code, error.line, error.key, error.message);`);
    expect(printed).toContain('INVALID_OPTION 5 allium.middleware.chain[0].words');
    expect(printed).toContain('Expected `words` to be a list of at least 1, got [].');
  });

  it('is listed; one that is not named is not loaded', async () => {
    write(
      'node_modules/allium-mw-bomb/package.json',
      JSON.stringify({
        name: 'allium-mw-bomb',
        version: '1.0.0',
        type: 'module',
        allium: { type: 'middleware', name: 'bomb' },
      }),
    );
    write('node_modules/allium-mw-bomb/index.js', 'throw new Error("loaded");');
    write('allium.toml', '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["wordfiltr"]');
    const printed = await run(`
      import { createAgent, installedPlugins, loadConfig } from '@allium/config';
      for (const plugin of await installedPlugins('.')) console.log(plugin.type, plugin.name, plugin.package, plugin.version);
      console.log((await createAgent(await loadConfig()).catch((thrown) => thrown)).message);`);
    expect(printed).toContain(
      'middleware bomb allium-mw-bomb 1.0.0\nmiddleware word-filter allium-mw-word-filter 0.1.0',
    );
    expect(printed).toMatch(
      /Did you mean "word-filter"\? There are: approval, .*, bomb, .*word-filter\. A plugin would be allium-mw-wordfiltr/,
    );
  });

  it('passes the check of plugins, with its own tests', async () => {
    const folder = join(project.folder, 'checked');
    cpSync(join(root, 'examples/plugin'), folder, { recursive: true });
    const printed = await run(`
      import { checkPlugin } from '@allium/config';
      console.log(JSON.stringify(await checkPlugin('checked')));`);
    const report = JSON.parse(printed);
    expect(report).toMatchObject({ ok: true, manifest: { name: 'word-filter' } });
    expect(report.checks.map(({ name }: { name: string }) => name)).toEqual([
      'manifest',
      'dependency',
      'export',
      'options',
      'laws',
    ]);
  });
});

describe('a plugin that was just written', () => {
  it('passes its own tests and the check, and overwrites nothing', async () => {
    const made = JSON.parse(
      await run(`
      import { checkPlugin, scaffoldPlugin } from '@allium/config';
      const made = await scaffoldPlugin('plugins', 'be-brief');
      console.log(JSON.stringify({ ...made, report: await checkPlugin(made.folder) }));`),
    );
    expect(made).toMatchObject({ package: 'allium-mw-be-brief', report: { ok: true } });
    for (const file of made.files) expect(existsSync(join(made.folder, file)), file).toBe(true);
    const { code, stdout } = await runCommand('npm', ['test', '--silent'], { cwd: made.folder });
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/# pass \d\d|pass \d\d/);
    const again = await run(`
      import { scaffoldPlugin } from '@allium/config';
      for (const name of ['be-brief', 'Not A Name', '../up'])
        console.log((await scaffoldPlugin('plugins', name).catch((thrown) => thrown)).message);`);
    expect(again).toMatch(
      /already exists\..*\n.*lower-case words with dashes.*\n.*lower-case words with dashes/,
    );
  });
});

describe('a plugin that is broken', () => {
  const cases: readonly (readonly [string, Record<string, string>, string, string])[] = [
    ['no package.json', {}, 'manifest', 'has no package.json'],
    [
      'no table "allium"',
      { 'package.json': '{ "name": "allium-mw-x" }' },
      'manifest',
      'has no table "allium"',
    ],
    [
      'another name',
      { 'package.json': manifest({ name: 'mw-x' }) },
      'manifest',
      'A middleware plugin is called allium-mw-<name>',
    ],
    [
      'another type',
      { 'package.json': manifest({ allium: { type: 'tool', name: 'x' } }) },
      'manifest',
      'to be middleware, model or store',
    ],
    [
      'an entry outside',
      { 'package.json': manifest({ allium: { type: 'middleware', name: 'x', entry: '../y.js' } }) },
      'manifest',
      'a path inside the package',
    ],
    [
      'allium as a dependency',
      { 'package.json': manifest({ peerDependencies: {} }), 'index.js': good },
      'dependency',
      'peerDependencies',
    ],
    ['no entry', { 'package.json': manifest() }, 'export', 'does not exist'],
    [
      'a module that throws',
      { 'package.json': manifest(), 'index.js': 'throw new Error("boom")' },
      'export',
      'boom',
    ],
    [
      'no function',
      { 'package.json': manifest(), 'index.js': 'export default 1' },
      'export',
      'no default export',
    ],
    [
      'options that are required',
      {
        'package.json': manifest(),
        'index.js': `export const optionsSchema = { type: 'object', required: ['a'] }; ${good}`,
      },
      'options',
      'exampleOptions',
    ],
    [
      'another name inside',
      { 'package.json': manifest(), 'index.js': good.replace("'x'", "'y'") },
      'options',
      'calls itself "y"',
    ],
    [
      'a broken law',
      {
        'package.json': manifest(),
        'index.js':
          'export default () => ({ name: "x", wrapModel: async (ctx, next) => { try { return await next(); } catch { ctx.response = { role: "assistant", content: [], stopReason: "stop", usage: {} }; return ctx.response; } } });',
      },
      'laws',
      'It breaks the laws',
    ],
    [
      'tests without laws',
      {
        'package.json': manifest({ scripts: { test: 'node --test' } }),
        'index.js': good,
        'index.test.js': '',
      },
      'laws',
      'none of them uses testMiddleware()',
    ],
    [
      'tests that fail',
      {
        'package.json': manifest({ scripts: { test: 'exit 1' } }),
        'index.js': good,
        'index.test.js': '// testMiddleware',
      },
      'laws',
      'Its tests fail',
    ],
  ];
  const folderOf = (what: string) => `broken/${what.replace(/\W/g, '')}`;
  let reports: Record<string, { ok: boolean; checks: { name: string; ok: boolean; message: string }[] }>;

  beforeAll(async () => {
    for (const [what, files] of cases) {
      mkdirSync(join(project.folder, folderOf(what)), { recursive: true });
      for (const [path, text] of Object.entries(files)) write(`${folderOf(what)}/${path}`, text);
    }
    reports = JSON.parse(
      await run(`
      import { checkPlugin } from '@allium/config';
      const reports = {};
      for (const folder of ${JSON.stringify(cases.map(([what]) => folderOf(what)))}) reports[folder] = await checkPlugin(folder);
      console.log(JSON.stringify(reports));`),
    );
  });

  it.each(cases)('is refused for %s', (what, _files, check, message) => {
    const { ok, checks } = reports[folderOf(what)]!;
    expect(ok).toBe(false);
    expect(checks.find((one) => !one.ok)).toMatchObject({
      name: check,
      message: expect.stringContaining(message),
    });
  });
});

it('a config in TypeScript is loaded, or the error says what to do', async () => {
  write(
    'ts/allium.config.ts',
    "import { defineConfig } from '@allium/config';\nconst turns: number = 3;\nexport default defineConfig({ model: 'offline', limits: { turns } });",
  );
  const printed = await run(`
    import { loadConfig } from '@allium/config';
    console.log(await loadConfig({ cwd: 'ts' }).then(({ config }) => config.limits.turns, (error) => error.message));`);
  if ('typescript' in process.features && process.features.typescript) expect(printed).toBe('3');
  else
    expect(printed).toMatch(
      /allium\.config\.ts: Node .* does not run TypeScript\. Use Node ≥ 22\.18, .*\.mjs in the place of \.ts\./,
    );
});

it('the packed config brings its JSON Schema', () => {
  const file = join(project.folder, 'node_modules/@allium/config/allium.schema.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveProperty('title', 'Allium');
});

function manifest(changes: object = {}): string {
  const usual = {
    name: 'allium-mw-x',
    type: 'module',
    allium: { type: 'middleware', name: 'x' },
    peerDependencies: { allium: '*' },
  };
  return JSON.stringify({ ...usual, ...changes });
}
