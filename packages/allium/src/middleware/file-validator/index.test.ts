import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, defineMiddleware, textOf, tool } from 'allium';
import { type FileValidatorOptions, fileValidator } from 'allium/middleware/file-validator';
import { collect, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

let base: string;
let root: string;
let other: string;

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'file-validator-')));
  root = join(base, 'root');
  other = join(base, 'root-2');
  for (const folder of [root, other, join(root, 'sub'), join(root, 'many.md')]) mkdirSync(folder);
  writeFileSync(join(root, 'a.md'), 'hello');
  writeFileSync(join(root, 'b.TXT'), 'x'.repeat(100));
  writeFileSync(join(base, 'secret.md'), 'secret');
  symlinkSync(base, join(root, 'up'));
  symlinkSync(join(base, 'secret.md'), join(root, 'link.md'));
  symlinkSync(join(base, 'new.md'), join(root, 'dangling.md'));
  symlinkSync(join(root, 'b.TXT'), join(root, 'renamed.md'));
  symlinkSync(join(root, 'loop'), join(root, 'loop'));
  symlinkSync(root, join(base, 'alias'));
});
afterAll(() => rmSync(base, { recursive: true }));

const OUTSIDE = 'is outside the allowed folders.';

/** What the tool was given, or what the model was told instead. */
async function given(args: unknown, options: Partial<FileValidatorOptions> = {}, more: object[] = []) {
  let seen: unknown;
  const read = tool({
    name: 'read',
    description: 'Reads.',
    input: z.unknown() as z.ZodType<any>,
    execute(parsed) {
      seen = parsed;
      return 'done';
    },
  });
  const model = scriptedModel([toolCalls({ name: 'read', args }), text('done')]);
  const middleware = [fileValidator({ roots: [root], ...options }), ...(more as never[])];
  const { messages } = await new Agent({ model, tools: [read], middleware }).run('go');
  return seen ?? textOf(messages[2]!);
}

testMiddleware(() => fileValidator({ roots: [tmpdir()] }), { name: 'file-validator', describe, it });
testMiddleware(() => fileValidator({ roots: [tmpdir()], args: ['value'] }), {
  name: 'file-validator with something to do',
  neutral: () => fileValidator({ roots: [tmpdir()] }),
  describe,
  it,
});

describe('file-validator', () => {
  it('gives the tool the resolved path, from the first root on', async () => {
    expect(await given({ path: 'a.md' })).toEqual({ path: join(root, 'a.md') });
    expect(await given({ path: 'sub/../a.md' })).toEqual({ path: join(root, 'a.md') });
    expect(await given({ path: join(root, 'a.md'), lines: 5 })).toEqual({
      path: join(root, 'a.md'),
      lines: 5,
    });
    expect(await given({ path: '' })).toEqual({ path: root });
  });

  it.each([
    ['a way up', '../secret.md'],
    ['a long way up', 'sub/../../secret.md'],
    ['an absolute path', '/etc/hostname'],
    ['a folder whose name begins like the root', '../root-2'],
    ['a link to a file outside', 'link.md'],
    ['a link to a folder outside', 'up/secret.md'],
    ['something new behind such a link', 'up/new.md'],
    ['a link that leads nowhere', 'dangling.md'],
    ['a loop of links', 'loop'],
    ['a file as if it were a folder', 'a.md/b.md'],
    ['a zero byte', 'a.md\0.png'],
  ])('refuses %s', async (_, path) => {
    for (const mustExist of [true, false]) expect(await given({ path }, { mustExist })).toContain(OUTSIDE);
  });

  it('reveals nothing about what lies outside', async () => {
    const [there, not] = [await given({ path: '../secret.md' }), await given({ path: '../nothing.md' })];
    expect(there).toBe(`Not run: "../secret.md" ${OUTSIDE} (Argument: path.)`);
    expect(not).toBe(`Not run: "../nothing.md" ${OUTSIDE} (Argument: path.)`);
  });

  it('allows several roots, and roots that are links', async () => {
    expect(await given({ path: other }, { roots: [root, other] })).toEqual({ path: other });
    const roots = [join(base, 'alias')];
    expect(await given({ path: 'a.md' }, { roots })).toEqual({ path: join(root, 'a.md') });
    expect(await given({ path: join(base, 'alias', 'a.md') }, { roots })).toEqual({
      path: join(root, 'a.md'),
    });
  });

  it('allows nothing in a root that does not exist', async () => {
    expect(await given({ path: 'x' }, { roots: [join(base, 'nowhere')], mustExist: false })).toContain(
      OUTSIDE,
    );
  });

  it('lets tools create files only when allowed', async () => {
    expect(await given({ path: 'new/deep.md' })).toBe(
      'Not run: "new/deep.md" does not exist. (Argument: path.)',
    );
    expect(await given({ path: 'new/deep.md' }, { mustExist: false })).toEqual({
      path: join(root, 'new/deep.md'),
    });
  });

  it('checks the ending of the file that the path resolves to', async () => {
    const extensions = ['md', '.TXT'];
    expect(await given({ path: 'b.TXT' }, { extensions })).toEqual({ path: join(root, 'b.TXT') });
    expect(await given({ path: 'renamed.md' }, { extensions: ['.md'] })).toBe(
      'Not run: "renamed.md" must end with .md. (Argument: path.)',
    );
    expect(await given({ path: 'new.exe' }, { extensions, mustExist: false })).toBe(
      'Not run: "new.exe" must end with .md, .txt. (Argument: path.)',
    );
    expect(await given({ path: 'sub' }, { extensions })).toEqual({ path: join(root, 'sub') });
  });

  it.each([
    ['.tar.gz', 'a.tar.gz', 'a.gz'],
    ['.d.ts', 'a.d.ts', 'a.ts'],
    ['.env', '.env', 'env'],
    ['gz', 'a.tar.gz', 'agz'],
  ])('compares the whole ending %s', async (ending, fits, not) => {
    const options = { extensions: [ending], mustExist: false };
    expect(await given({ path: fits }, options)).toEqual({ path: join(root, fits) });
    expect(await given({ path: not }, options)).toContain('must end with');
  });

  it('refuses files that are too big, and folders never', async () => {
    expect(await given({ path: 'b.TXT' }, { maxBytes: 99 })).toBe(
      'Not run: "b.TXT" has 100 bytes, more than the 99 allowed. (Argument: path.)',
    );
    expect(await given({ path: 'b.TXT' }, { maxBytes: 100 })).toEqual({ path: join(root, 'b.TXT') });
    expect(await given({ path: 'many.md' }, { maxBytes: 0 })).toEqual({ path: join(root, 'many.md') });
  });

  it('refuses what is neither a file nor a folder', async () => {
    expect(await given({ path: '/dev/null' }, { roots: ['/dev'] })).toContain(
      'is neither a file nor a folder',
    );
  });

  it('finds paths at any depth, and in lists', async () => {
    const args = { files: ['a.md', 'sub'], edit: { file_path: 'a.md', text: 'and/or' }, path: 5, dir: null };
    expect(await given(args)).toEqual({
      files: [join(root, 'a.md'), join(root, 'sub')],
      edit: { file_path: join(root, 'a.md'), text: 'and/or' },
      path: 5,
      dir: null,
    });
    expect(await given({ jobs: [{ path: 'a.md' }, { path: '../secret.md' }] })).toContain(
      `${OUTSIDE} (Argument: jobs[1].path.)`,
    );
  });

  it.each([
    ...['filepath', 'filePath', 'FILE_PATH', 'Path', 'PATHS', 'file-name', 'pathname', 'inputFile'],
    ...['src', 'source', 'target', 'dest', 'destination', 'SRC', 'sourceDir', 'output_directory', 'cwd'],
  ])('takes %s for a path by its name', async (name) => {
    expect(await given({ [name]: 'a.md' })).toEqual({ [name]: join(root, 'a.md') });
    expect(await given({ deep: [{ [name]: ['a.md', 'link.md'] }] })).toBe(
      `Not run: "link.md" ${OUTSIDE} (Argument: deep[0].${name}[1].)`,
    );
    expect(await given({ [name]: 'nothing' })).toContain('does not exist');
  });

  describe('under any other name', () => {
    it.each([
      ['the top', '/etc/hostname'],
      ['a drive', 'C:\\Windows\\win.ini'],
      ['further up, as on Windows', '..\\..\\secret.md'],
      ['the home folder', '~/.ssh/id_rsa'],
      ['further up', '../secret.md'],
      ['further up, on the way', 'sub/../../secret.md'],
      ['a URL of a file', 'file:///etc/hostname'],
      ['a URL of a file elsewhere', 'file://host/etc/hostname'],
      ['a link that leads out', 'link.md'],
      ['a folder behind such a link', 'up/secret.md'],
      ['a file in the folder of the process', 'package.json'],
      ['the same, said clearly', './package.json'],
      ['the top, after blanks that a tool may trim', ' \t/etc/hostname\n'],
      ['further up, with such blanks', '../secret.md '],
    ])('refuses what leads to %s', async (_, value) => {
      for (const mustExist of [true, false]) {
        expect(await given({ document: value }, { mustExist })).toContain(`${OUTSIDE} (Argument: document.)`);
        expect(await given({ a: { B: [1, value] } }, { mustExist })).toContain(
          `${OUTSIDE} (Argument: a.B[1].)`,
        );
      }
      expect(await given([value])).toContain(OUTSIDE);
    });

    it.each(['/etc/motd', '../secret.md', 'link.md'])('refuses %s as a name too', async (name) => {
      expect(await given({ contents: { [name]: 'Hi.' } })).toBe(
        `Not run: ${JSON.stringify(name)} ${OUTSIDE} (Argument: contents.${name}.)`,
      );
      expect(await given({ contents: { [name]: 'Hi.' } }, { args: ['path'] })).toEqual({
        contents: { [name]: 'Hi.' },
      });
    });

    it('lets values through unchanged that stay inside or are not paths', async () => {
      const args = {
        document: 'a.md',
        also: './sub/../a.md',
        whole: join(root, 'a.md'),
        type: 'text/plain',
        choice: 'and/or',
        site: 'https://x.org/../a',
        note: 'See ../x\n/etc/passwd',
        dot: '.',
        word: 'test',
        profile: 'ann',
        fileContent: 'x',
        contents: { 'a.md': 'Hi.', './sub/new.md': 'Hi.' },
        n: 1,
      };
      expect(await given(args)).toEqual(args);
    });

    it('checks nothing else if it is told which arguments are paths', async () => {
      expect(await given({ document: '/etc/hostname' }, { args: ['path'] })).toEqual({
        document: '/etc/hostname',
      });
      expect(await given({ PATH: '../secret.md' }, { args: ['path'] })).toContain(OUTSIDE);
    });
  });

  it('says which arguments it judged', async () => {
    const read = tool({ name: 'read', description: 'Reads.', input: z.any(), execute: () => 'read' });
    const args = { path: 'a.md', all: [{ src: 'sub' }], also: './a.md', type: 'text/plain', n: 1 };
    const model = scriptedModel([toolCalls({ name: 'read', args }), text('done')]);
    const agent = new Agent({ model, tools: [read], middleware: [fileValidator({ roots: [root] })] });
    const { events } = await collect(agent.stream('go'));
    const told = events.flatMap((event) => (event.type === 'custom' ? [event.data] : []));
    expect(told).toEqual([{ tool: 'read', args: ['path', 'all[0].src', 'also'] }]);
  });

  it('can be told which arguments are paths, for all tools or by tool', async () => {
    expect(await given({ path: '../x', target: '../y' }, { args: ['target'] })).toContain('"../y"');
    expect(await given({ target: '../y' }, { args: { write: ['target'] } })).toEqual({ target: '../y' });
    expect(await given({ target: '../y' }, { args: { read: ['target'] } })).toContain(OUTSIDE);
  });

  it('judges what other middleware make of the arguments', async () => {
    const rewrite = defineMiddleware({
      name: 'rewrite',
      beforeToolCall: (ctx) =>
        ctx.args.path.endsWith('a.md') ? { args: { path: '../secret.md' } } : undefined,
    });
    const layer = defineMiddleware({
      name: 'layer',
      wrapTool: (_, next) => next({ args: { path: '../secret.md' } }),
    });
    expect(await given({ path: 'a.md' }, {}, [rewrite])).toContain(OUTSIDE);
    expect(await given({ path: 'a.md' }, {}, [layer])).toContain(OUTSIDE);
  });

  it('serves 100 concurrent runs, and two instances both apply', async () => {
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, n) => given({ path: n % 2 ? 'a.md' : '../secret.md' })),
    );
    expect(all.every((one, n) => (n % 2 ? typeof one === 'object' : String(one).includes(OUTSIDE)))).toBe(
      true,
    );
    const second = fileValidator({ roots: [root], extensions: ['.txt'] });
    expect(await given({ path: 'a.md' }, {}, [second])).toContain('must end with .txt');
    expect(await given({ path: 'b.TXT' }, {}, [second])).toEqual({ path: join(root, 'b.TXT') });
  });

  it('does the same when the run is streamed', async () => {
    const model = scriptedModel([toolCalls({ name: 'read', args: { path: '../secret.md' } }), text('done')]);
    const read = tool({ name: 'read', description: 'Reads.', input: z.any(), execute: () => 'read' });
    const agent = new Agent({ model, tools: [read], middleware: [fileValidator({ roots: [root] })] });
    const { result } = await collect(agent.stream('go'));
    expect(textOf(result!.messages[2]!)).toContain(OUTSIDE);
  });

  it.each([
    [{}, 'Expected `roots` to be a non-empty list of non-empty texts, got undefined.'],
    [{ roots: [] }, 'Expected `roots` to be a non-empty list of non-empty texts, got [].'],
    [{ roots: '/tmp' }, 'Expected `roots` to be a non-empty list of non-empty texts, got "/tmp".'],
    [{ roots: ['x'], extensions: null }, 'Expected `extensions` to be a non-empty list of non-empty texts'],
    [{ roots: ['x'], extensions: '' }, 'Expected `extensions` to be a non-empty list of non-empty texts'],
    [{ roots: ['x'], args: null }, 'Expected `args` to be a list of names, or lists of names by tool'],
    [{ roots: ['x'], extensions: '.md' }, 'Expected `extensions` to be a non-empty list of non-empty texts'],
    [{ roots: ['x'], maxBytes: -1 }, 'Expected `maxBytes` to be an integer ≥ 0, got -1.'],
    [{ roots: ['x'], mustExist: 'no' }, 'Expected `mustExist` to be true or false, got "no".'],
    [
      { roots: ['x'], args: { read: 'path' } },
      'Expected `args.read` to be a non-empty list of non-empty texts',
    ],
    [{ roots: ['x'], args: 'path' }, 'Expected `args` to be a list of names, or lists of names by tool'],
    [{ root: ['x'] }, 'Unknown option `root` of fileValidator(). Did you mean `roots`?'],
  ])('refuses %j', (options, message) => {
    expect(() => fileValidator(options as never)).toThrow(message);
  });
});
