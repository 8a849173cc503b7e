import { chownSync, lchownSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { project } from '../test/project.js';
import { ConfigError, createAgent, type LoadConfigOptions, loadConfig, Secret } from './index.js';

const failing = async (options: LoadConfigOptions): Promise<ConfigError> => {
  const error = await loadConfig(options).then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return error;
};

describe('where a config is looked for', () => {
  it('upward from the folder, the nearest first', async () => {
    const dir = project({
      'allium.toml': '[allium]\nname = "outer"',
      'a/allium.json': { allium: { name: 'inner' } },
      'a/b/c/x.txt': '',
    });
    expect(await loadConfig({ cwd: `${dir}/a/b/c` })).toMatchObject({
      file: `${dir}/a/allium.json`,
      dir: `${dir}/a`,
      config: { name: 'inner' },
      source: { format: 'json' },
    });
    expect((await loadConfig({ cwd: dir })).config.name).toBe('outer');
    expect((await loadConfig({ cwd: `${dir}/a/b`, file: '../../allium.toml' })).config.name).toBe('outer');
  });

  // Only root can give files away.
  it.runIf(process.geteuid?.() === 0)(
    'not in a folder above whose file belongs to somebody else',
    async () => {
      const made = 'globalThis.ranForeignConfig = true; export default { name: "foreign" };';
      const dir = project({
        'allium.config.mjs': made,
        'a/x.txt': '',
        'b/allium.toml': '[allium]',
        'b/c/x.txt': '',
      });
      chownSync(`${dir}/allium.config.mjs`, 12345, 12345);
      chownSync(`${dir}/b/allium.toml`, 12345, 12345);
      for (const [cwd, file] of [
        [`${dir}/a`, `${dir}/allium.config.mjs`],
        [`${dir}/b/c`, `${dir}/b/allium.toml`],
      ] as const) {
        const error = await failing({ cwd });
        expect(error).toMatchObject({ code: 'CONFIG_UNTRUSTED', file, data: { owner: 12345 } });
        expect(error.message).toContain(`(uid 12345, you are 0)`);
        expect(error.message).toContain(`--config ${file}`);
      }
      expect(globalThis).not.toHaveProperty('ranForeignConfig');
      // Where one works, and by name, it is what one asked for.
      expect((await loadConfig({ cwd: dir })).config.name).toBe('foreign');
      expect((await loadConfig({ cwd: `${dir}/a`, file: '../allium.config.mjs' })).config.name).toBe(
        'foreign',
      );
    },
  );

  it.runIf(process.geteuid?.() === 0)('not behind a link that somebody else made', async () => {
    const dir = project({ 'mine.mjs': 'export default {};', 'a/x.txt': '' });
    symlinkSync(`${dir}/mine.mjs`, `${dir}/allium.config.mjs`);
    lchownSync(`${dir}/allium.config.mjs`, 12345, 12345);
    expect(await failing({ cwd: `${dir}/a` })).toMatchObject({ code: 'CONFIG_UNTRUSTED' });
  });

  it('says where it looked, and names the files if there is more than one', async () => {
    const dir = project({ 'x.txt': '', 'two/allium.toml': '', 'two/allium.json': '{}' });
    expect(await failing({ cwd: dir })).toMatchObject({
      code: 'CONFIG_NOT_FOUND',
      message: expect.stringContaining(`allium.config.ts or allium.config.mjs in ${dir} or a folder above`),
    });
    expect(await failing({ cwd: dir, file: 'nope.toml' })).toMatchObject({ code: 'CONFIG_NOT_FOUND' });
    expect((await failing({ cwd: `${dir}/two` })).message).toContain(
      'allium.toml and allium.json, and only one can count.',
    );
    expect((await failing({ cwd: dir, file: 'x.txt' })).message).toContain('Expected a file that ends with');
    expect(await failing({ cwd: dir, file: 'two' })).toMatchObject({
      ...{ code: 'CONFIG_INVALID', file: `${dir}/two` },
      message: `${dir}/two: This is a folder. Name the file in it.`,
    });
    await expect(loadConfig({ cdw: '.' } as object)).rejects.toThrow('It takes: cwd, file, env.');
  });

  it('lists the variables the file uses, each once', async () => {
    const prompt = 'Say $${NOT}, ${B:-b} and ${A:plain}; ${B}.';
    const dir = project({
      'allium.json': { allium: { systemPrompt: prompt, plugins: { retry: { attempts: '${C}' } } } },
      'module/allium.config.mjs': 'export default { name: `${"x"}`, systemPrompt: "${A}" };',
    });
    const env = { A: 'a', B: 'b', C: '3' };
    expect((await loadConfig({ cwd: dir, env })).variables).toEqual(['B', 'A', 'C']);
    expect((await loadConfig({ cwd: `${dir}/module`, env })).variables).toEqual([]);
  });

  it('modules export what a file has under `allium`', async () => {
    const dir = project({
      'allium.config.mjs': 'export default { model: "offline", limits: { turns: 3 } };',
      'bad/allium.config.mjs': 'export const config = {};',
      'ts/allium.config.ts': 'const turns: number = 4; export default { limits: { turns } };',
    });
    expect(await loadConfig({ cwd: dir })).toMatchObject({
      config: { limits: { turns: 3 } },
      source: { format: 'module' },
    });
    expect((await failing({ cwd: `${dir}/bad` })).message).toContain('export default defineConfig');
    expect((await loadConfig({ cwd: `${dir}/ts` })).config.limits).toEqual({ turns: 4 });
  });
});

describe('what is wrong with a file', () => {
  it.each([
    ['[allium]\n\nmodel = ', 3, undefined, 'This is not TOML'],
    [
      '[allium]\nmodel = 3',
      2,
      'allium.model',
      'Expected `model` to be non-empty text or a table of options, got 3.',
    ],
    ['[allium]\nmodle = "x"', 2, 'allium.modle', 'Unknown option `modle`. Did you mean `model`?'],
    [
      '[middleware]\nchain = []',
      1,
      'middleware',
      'Everything stands under `allium`: write `allium.middleware`.',
    ],
    [
      '[spine.middleware]\nchain = []\n[spine.plugins.retry]\nattempts = 2',
      1,
      'spine',
      'Unknown key `spine`. Everything stands under `allium`: write `allium.middleware`, `allium.plugins`.',
    ],
    [
      '[allium]\nmiddleware = ["retry"]',
      2,
      'allium.middleware',
      'got ["retry"]. The list is `middleware.chain`.',
    ],
    ['[model]\nname = "x"', 1, 'model', 'Everything stands under `allium`: write `allium.model`.'],
    ['[allium]\nsystem = "x"', 2, 'allium.system', 'Unknown option `system`. Here that is `systemPrompt`.'],
    ['[allium.limits]\nmaxSteps = 3', 2, 'allium.limits.maxSteps', 'Here that is `turns`.'],
    ['\n[alium]\nmodel = "offline"', 2, 'alium', 'Unknown key `alium`. Did you mean `allium`?'],
    ['[allium]\n[Allium.limits]\nturns = 3', 2, 'Allium', 'Unknown key `Allium`. Did you mean `allium`?'],
    [
      '[allium.limits]\n\nturns = -1',
      3,
      'allium.limits.turns',
      'Expected `limits.turns` to be an integer ≥ 0, got -1.',
    ],
    [
      '[allium.middleware]\nchain = ["a",\n  { atempts = 1 }]',
      3,
      'allium.middleware.chain[1].use',
      'to be non-empty text, got undefined',
    ],
    ['[allium.middleware]\nchain = "retry"', 2, 'allium.middleware.chain', 'to be a list, got "retry"'],
    ['\nallium = 3', 2, 'allium', 'Expected `allium` to be a table'],
    ['\n[[allium]]', 2, 'allium', 'Expected `allium` to be a table'],
    ['[allium.plugins]\ncache = 3', 2, 'allium.plugins.cache', 'to be a table of options, got 3'],
  ])('%j', async (text, line, key, message) => {
    const dir = project({ 'allium.toml': text });
    const error = await failing({ cwd: dir });
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', file: `${dir}/allium.toml`, line, key });
    expect(error.message).toContain(message);
    if (line) expect(error.message).toContain(`${dir}/allium.toml:${line}: `);
  });

  it('has a line in JSON, too', async () => {
    const dir = project({
      'allium.json': '{\n "allium": {\n  "limits": { "turns": 1,\n   "trns": 2 } } }',
      'b/allium.json': '{\n "allium": 3 }',
    });
    expect(await failing({ cwd: dir })).toMatchObject({ line: 4, key: 'allium.limits.trns' });
    expect(await failing({ cwd: `${dir}/b` })).toMatchObject({ line: 2, key: 'allium' });
  });

  it.each([
    ['a token', '{\n "allium": {\n x', 3],
    ['a word', '{\n "allium": {\n  "model": offline\n } }', 3],
    ['a word that a line before it has in quotes', '{\n "allium": {\n  "a": "o",\n  "b": [\n o] } }', 5],
    ['a comma too many', '{\n "allium": {\n  "model": "offline",\n } }', 4],
    ['a missing value', '{\n "allium": {\n  "model":\n } }', 4],
    ['a missing end', '{\n "allium": {\n  "model": [\n', 3],
    ['nothing', '', 1],
  ])('has a line in what is not JSON: %s', async (_, text, line) => {
    expect(await failing({ cwd: project({ 'allium.json': text }) })).toMatchObject({
      ...{ code: 'CONFIG_INVALID', line },
      message: expect.stringContaining('This is not JSON'),
    });
  });

  it('is a name given twice', async () => {
    const dir = project({
      'allium.toml':
        '[allium.middleware]\nchain = [\n { use = "retry", as = "m" },\n "cache",\n { use = "budget", as = "m" },\n]',
    });
    expect(await failing({ cwd: dir })).toMatchObject({
      ...{ line: 5, key: 'allium.middleware.chain[2].as', code: 'CONFIG_INVALID' },
      message: expect.stringContaining('chain[0] is already called "m". Give this one another name.'),
    });
  });

  // Read as UTF-8 all the same, the prompt would have a replacement character in it.
  it.each(['latin1', 'utf16le'] as const)('is an encoding other than UTF-8: %s', async (encoding) => {
    const cwd = project({});
    writeFileSync(join(cwd, 'allium.toml'), Buffer.from('[allium]\nsystemPrompt = "Sé breve."', encoding));
    await expect(loadConfig({ cwd })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: `${join(cwd, 'allium.toml')}: It is not UTF-8. Save it in that encoding.`,
    });
  });

  it('empty files are empty configs', async () => {
    expect((await loadConfig({ cwd: project({ 'allium.toml': '' }) })).config).toEqual({});
    expect((await loadConfig({ cwd: project({ 'allium.json': '\uFEFF{"$schema":"x"}' }) })).config).toEqual(
      {},
    );
  });
});

describe('variables', () => {
  const load = (text: string, env: Record<string, string | undefined> = {}) =>
    loadConfig({ cwd: project({ 'allium.toml': text }), env });
  const prompt = async (text: string, env?: Record<string, string | undefined>) =>
    (await load(`[allium]\nsystemPrompt = '${text}'`, env)).config.systemPrompt;

  it('are filled in as secrets; defaults and the rest are plain', async () => {
    const secret = await prompt('a ${X} b ${Y:-z}', { X: 'value' });
    expect(secret).toBeInstanceOf(Secret);
    expect((secret as Secret).reveal()).toBe('a value b z');
    expect(await prompt('${X:-default}')).toBe('default');
    expect(await prompt('${X:-}')).toBe('');
    expect(await prompt('${X:-d}', { X: '' })).toBe('d');
    expect(((await prompt('${X}', { X: '' })) as Secret).reveal()).toBe('');
    expect(await prompt('$${X} $X {X}')).toBe('${X} $X {X}');
    expect(((await prompt('${X}', { X: '${Y}' })) as Secret).reveal()).toBe('${Y}');
  });

  it('that are not set are an error with file, line and key', async () => {
    const dir = project({
      'allium.toml': '[allium.middleware]\nchain = [\n "a",\n { use = "b", key = "x${MISSING}" }]',
    });
    expect(await failing({ cwd: dir, env: {} })).toMatchObject({
      code: 'CONFIG_VARIABLE',
      message: `${dir}/allium.toml:4: \`allium.middleware.chain[1].key\`: The environment variable MISSING is not set. Set it, or write \${MISSING:-default}.`,
    });
    for (const name of ['constructor', 'toString', '__proto__'])
      await expect(prompt(`\${${name}}`)).rejects.toMatchObject({ code: 'CONFIG_VARIABLE', line: 2 });
    expect((await failing({ cwd: project({ 'allium.toml': 'allium.name = "${1x}"' }) })).message).toContain(
      'Expected ${NAME}',
    );
  });

  it('are read from the process if none are given', async () => {
    expect(
      await (await loadConfig({ cwd: project({ 'allium.toml': 'allium.systemPrompt = "${PATH}"' }) })).config
        .systemPrompt,
    ).toBeInstanceOf(Secret);
  });

  it('become numbers and booleans where those are expected', async () => {
    const { config } = await load('[allium.limits]\nturns = "${N}"', { N: '12' });
    expect(String(config.limits?.turns)).toBe('***');
    await expect(load('[allium.limits]\nturns = "${N}"', { N: 'twelve' })).rejects.toThrow(
      'Expected `limits.turns` to be an integer ≥ 0, got "***".',
    );
  });

  it.each([
    ['4', 4],
    [' 0.5 ', 0.5],
    ['1e3', 1000],
  ])('have defaults that become numbers too: %j', async (text, number) => {
    const loaded = await load(
      `[allium]\nmodel = "offline"\n[allium.limits]\ntokens = "\${N:-${text}}"\ncostUsd = "\${M:plain}"`,
      { M: '2' },
    );
    const { agent } = await createAgent(loaded);
    expect(agent.limits).toMatchObject({ tokens: number, costUsd: 2 });
    expect(JSON.stringify(loaded.config.limits)).toBe(JSON.stringify({ tokens: text, costUsd: '2' }));
  });

  it('have defaults for the options of middleware', async () => {
    const chain = (retry: string) =>
      load(`[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "retry", ${retry} }]`).then(
        (one) => createAgent(one),
      );
    expect((await chain('attempts = "${M:-4}", as = "${A:-7}"')).names).toEqual(['7']);
    await expect(chain('attempts = "${M:-four}"')).rejects.toThrow('got "four"');
    // Who writes text where a number is wanted has made a mistake.
    await expect(chain('attempts = "4"')).rejects.toThrow('got "4"');
  });

  it('have defaults that stay text where text is expected', async () => {
    const loaded = await load(
      '[allium]\nmodel = "offline"\nsystemPrompt = "${P:-42}"\nname = "${N:-true}"\ntenant = "${T:plain:-1}"',
    );
    expect((await createAgent(loaded)).agent).toMatchObject({
      systemPrompt: '42',
      name: 'true',
      tenant: '1',
    });
  });

  it('are plain if the file says so', async () => {
    expect(await prompt('Speak ${L:plain}.', { L: 'German' })).toBe('Speak German.');
    expect(await prompt('Speak ${L:plain:-English}.')).toBe('Speak English.');
    expect(await prompt('${L:plain} ${K}', { L: 'a', K: 'b' })).toBeInstanceOf(Secret);
    await expect(prompt('${L:plan}', { L: 'x' })).rejects.toThrow('${NAME:plain}, got ${L:plan}.');
  });

  it.each(['${FOO', 'a ${', '${A:-b} ${FOO'])('must be closed: %j', async (text) => {
    await expect(prompt(text, { FOO: 'x' })).rejects.toMatchObject({
      ...{ code: 'CONFIG_VARIABLE', line: 2, key: 'allium.systemPrompt' },
      message: expect.stringContaining('`${` has no `}`. A plain ${ is written $${.'),
    });
    expect(await prompt('$${FOO')).toBe('${FOO');
  });

  it('cannot be used in names, because names are shown', async () => {
    await expect(load('allium.name = "${N}"', { N: 'x' })).rejects.toThrow('A name is shown everywhere');
    await expect(
      load('[allium.middleware]\nchain = [{ use = "retry", as = "${N}" }]', { N: 'x' }),
    ).rejects.toThrow('`allium.middleware.chain[0].as`: A name is shown everywhere');
  });
});

describe('Secret', () => {
  it('prints as stars, however it is printed', () => {
    const secret = new Secret('canary');
    const printed = [
      String(secret),
      `${secret}`,
      JSON.stringify({ secret }),
      inspect({ deep: { secret } }, { depth: 9, showHidden: true }),
      inspect(secret),
      Object.keys(secret).join(),
      JSON.stringify(Object.getOwnPropertyDescriptors(secret)),
    ];
    for (const text of printed) expect(text).not.toContain('canary');
    expect(printed.slice(0, 2)).toEqual(['***', '***']);
    expect(secret.reveal()).toBe('canary');
  });
});
