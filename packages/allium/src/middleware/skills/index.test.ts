import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Agent, defineMiddleware, textOf } from 'allium';
import { type SkillsOptions, skills } from 'allium/middleware/skills';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'skills-')));
afterAll(() => rmSync(base, { recursive: true }));

let count = 0;
/** A folder with these files; a value that begins with `->` is a symbolic link. */
function folder(files: Record<string, string>): string {
  const dir = join(base, `${count++}`, 'skills');
  mkdirSync(dir, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const path = join(dir, name);
    mkdirSync(dirname(path), { recursive: true });
    if (content.startsWith('->')) symlinkSync(content.slice(2), path);
    else writeFileSync(path, content);
  }
  return dir;
}

const skill = (name: string, description: string, body = `Do ${name}.`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`;
const two = () =>
  folder({
    'b-second/SKILL.md': skill('review', 'Reviews code.'),
    'b-second/checks/list.md': 'Check it.',
    'a-first/SKILL.md': skill('write', 'Writes text.', 'See style.md.'),
    'a-first/style.md': '---\nnot: stripped\n---\nBe brief.',
  });

async function read(dir: string, args: unknown, options: Partial<SkillsOptions> = {}) {
  const model = scriptedModel([toolCalls({ name: 'read_skill', args }), text('done')]);
  const { messages } = await new Agent({ model, middleware: [skills({ dir, ...options })] }).run('go');
  const [result] = messages.filter((message) => message.role === 'tool');
  return { text: textOf(result!), isError: result!.isError };
}

const empty = folder({ 'notes.txt': 'nothing' });
const laws = two();
testMiddleware(() => skills({ dir: empty }), { name: 'skills, of which there are none', describe, it });
testMiddleware(() => skills({ dir: laws }), {
  name: 'skills',
  changes: ['system-prompt', 'tools'],
  scenarios: [
    {
      name: 'skills that are read, and one that is not there',
      answers: [
        toolCalls(
          { name: 'read_skill', args: { name: 'write' } },
          { name: 'read_skill', args: { name: 'x' }, id: 'b' },
        ),
        text('done'),
      ],
    },
  ],
  describe,
  it,
});

describe('skills', () => {
  it('lists names and descriptions, sorted, the same for every request', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'read_skill', args: { name: 'write' } }),
      text('done'),
      text('again'),
    ]);
    const session = new Agent({
      model,
      systemPrompt: 'Be kind.',
      middleware: [skills({ dir: two() })],
    }).session('s');
    await session.run('go');
    await session.run('again');
    const [first] = model.requests;
    expect(first?.systemPrompt).toBe(
      'Be kind.\n\n## Skills\n\nThese are instructions for certain tasks. When a task fits one of them, read it with read_skill before you begin.\n\n- review: Reviews code.\n- write: Writes text.',
    );
    expect(new Set(model.requests.map(({ systemPrompt }) => systemPrompt)).size).toBe(1);
    expect(skills({ dir: two() }).transformSystemPrompt!('', undefined as never)).toMatch(/^## Skills/);
  });

  it('is the same text whatever the order of the folders', () => {
    const [one, other] = [two(), two()];
    renameSync(join(other, 'a-first'), join(other, 'z-last'));
    const prompt = (dir: string) => skills({ dir }).transformSystemPrompt!('', undefined as never);
    expect(prompt(other)).toBe(prompt(one));
  });

  it('reads the body without the front matter, when it is asked for', async () => {
    const dir = two();
    expect(await read(dir, { name: 'write' })).toEqual({ text: 'See style.md.', isError: false });
    writeFileSync(join(dir, 'a-first/SKILL.md'), skill('write', 'Writes text.', 'Changed.'));
    expect((await read(dir, { name: 'write', file: 'SKILL.md' })).text).toBe('Changed.');
  });

  it('reads other files as they are, in folders too', async () => {
    expect((await read(two(), { name: 'write', file: 'style.md' })).text).toBe(
      '---\nnot: stripped\n---\nBe brief.',
    );
    expect((await read(two(), { name: 'review', file: './checks/list.md' })).text).toBe('Check it.');
  });

  it('lists what exists when something is asked for that does not', async () => {
    expect(await read(two(), { name: 'rewiew' })).toEqual({
      text: 'There is no skill "rewiew". Did you mean "review"? Skills: review, write.',
      isError: true,
    });
    expect(await read(two(), { name: 'review', file: 'lst.md' })).toEqual({
      text: '"lst.md" is not a file of the skill "review". Its files: SKILL.md, checks/list.md.',
      isError: true,
    });
    expect((await read(two(), { name: 'review', path: 'x' })).text).toContain(
      'path: Unknown property. Expected: name, file.',
    );
  });

  it('ignores anything but a skill', async () => {
    const dir = folder({
      'README.md': 'no folder',
      'other/notes.md': 'no SKILL.md',
      '.hidden/SKILL.md': skill('hidden', 'Hidden.'),
      'odd/SKILL.md/x.md': 'a folder of that name',
      dangling: '->nowhere',
      loop: '->loop',
      'good/SKILL.md': skill('good', 'Good.'),
    });
    const model = scriptedModel([text('done')]);
    await new Agent({ model, middleware: [skills({ dir })] }).run('go');
    expect(model.requests[0]?.systemPrompt).toMatch(/\n\n- good: Good\.$/);
  });

  it('gives guards what it reads', async () => {
    const dir = folder({ 'a/SKILL.md': skill('a', 'A.', 'The code is 1234.') });
    const guard = defineMiddleware({
      name: 'redact',
      guard: {
        on: ['tool-result'],
        find: (said) => [...said.matchAll(/\d{4}/g)].map(({ index }) => ({ start: index, end: index + 4 })),
      },
    });
    const model = scriptedModel([toolCalls({ name: 'read_skill', args: { name: 'a' } }), text('done')]);
    const { messages } = await new Agent({ model, middleware: [skills({ dir }), guard] }).run('go');
    expect(textOf(messages[2]!)).toBe('The code is [redacted].');
  });
});

describe('skills, staying in the folder', () => {
  const dir = folder({
    'a/SKILL.md': skill('a', 'A.'),
    'a/inner.md': 'inside',
    'a/sub/deep.md': 'deep',
    'a/link.md': '->inner.md',
    'a/out.md': '->../../secret.md',
    'a/up': '->../..',
    'a/sibling.md': '->../b/SKILL.md',
    'a/gone.md': '->nothing.md',
    'a/loop.md': '->loop.md',
    'a/big.md': 'x'.repeat(200),
    'a/bytes.bin': 'a\0b',
    'a-2/secret.md': 'secret',
    'b/SKILL.md': skill('b', 'B.'),
    '../secret.md': 'secret',
  });
  execFileSync('mkfifo', [join(dir, 'a/pipe')]);

  it.each([
    '../../secret.md',
    '..',
    'sub/../../../secret.md',
    'sub/../inner.md',
    '..\\..\\secret.md',
    join(dir, '../secret.md'),
    join(dir, 'a/inner.md'),
    'C:\\secret.md',
    'C:secret.md',
    '\\secret.md',
    'out.md',
    'up/secret.md',
    'sibling.md',
    '../b/SKILL.md',
    '../a-2/secret.md',
    'gone.md',
    'loop.md',
    'inner.md/x',
    'inner.md\0.txt',
    'sub',
    '.',
    '',
    'pipe',
  ])('refuses %j with the same words as a missing file', async (file) => {
    const { text: said, isError } = await read(dir, { name: 'a', file });
    expect(isError).toBe(true);
    expect(said).toMatch(
      new RegExp(
        `^${JSON.stringify(file).replace(/[\\.*+?^$()[\]{}|]/g, '\\$&')} is not a file of the skill "a"\\. Its files: `,
      ),
    );
    expect(said).not.toContain('secret\n');
    expect(said.split('Its files: ')[1]).toBe('SKILL.md, big.md, bytes.bin, inner.md, sub/deep.md.');
  });

  it('follows links that stay inside', async () => {
    expect((await read(dir, { name: 'a', file: 'link.md' })).text).toBe('inside');
  });

  it('refuses files that are too big or not text', async () => {
    expect((await read(dir, { name: 'a', file: 'big.md' }, { maxBytes: 199 })).text).toContain(
      '"big.md" has 200 bytes, more than the 199 that may be read.',
    );
    expect((await read(dir, { name: 'a', file: 'big.md' }, { maxBytes: 200 })).isError).toBe(false);
    expect((await read(dir, { name: 'a', file: 'bytes.bin' })).text).toContain('"bytes.bin" is not a text.');
  });

  it('refuses a folder that has been replaced by a link since', async () => {
    const own = folder({ 'a/SKILL.md': skill('a', 'A.'), '../elsewhere/SKILL.md': 'secret' });
    const model = scriptedModel([toolCalls({ name: 'read_skill', args: { name: 'a' } }), text('done')]);
    const agent = new Agent({ model, middleware: [skills({ dir: own })] });
    renameSync(join(own, 'a'), join(own, 'old'));
    symlinkSync(join(own, '../elsewhere'), join(own, 'a'));
    expect(textOf((await agent.run('go')).messages[2]!)).toContain(
      '"SKILL.md" is not a file of the skill "a".',
    );
  });

  it.each([
    ['a skill', { a: '->../elsewhere', '../elsewhere/SKILL.md': skill('a', 'A.') }],
    ['a SKILL.md', { 'a/SKILL.md': '->../../outside.md', '../outside.md': skill('a', 'A.') }],
  ])('refuses %s behind a link that leads out', (_, files) => {
    const own = folder(files as unknown as Record<string, string>);
    expect(problemsIn(own)).toEqual([
      `${join(own, 'a/SKILL.md')}:1 is behind a symbolic link that leads out of the folder. Copy the skill there instead.`,
    ]);
  });

  it('takes a folder of skills that is a link itself', async () => {
    const own = folder({ 'a/SKILL.md': skill('a', 'A.') });
    symlinkSync(own, `${own}-link`);
    expect((await read(`${own}-link`, { name: 'a' })).text).toBe('Do a.');
  });
});

/** What explain() says about a folder of skills. */
const problemsIn = (dir: string) =>
  [...(skills({ dir }).hazards?.(undefined as never) ?? [])].map(({ message }) => message);

describe('skills, front matter', () => {
  const prompt = (content: string) =>
    (
      skills({ dir: folder({ 'a/SKILL.md': content }) }).transformSystemPrompt!(
        '',
        undefined as never,
      ) as string
    )
      .split('\n')
      .at(-1);

  it.each([
    ['plain', 'name: a\ndescription: Does: it, "well".', '- a: Does: it, "well".'],
    ['double quotes', 'name: "a"\ndescription: "Say \\"hi\\"\\n# now" # why', '- a: Say "hi" # now'],
    ['single quotes', "name: 'a'\ndescription: 'It''s it.'", "- a: It's it."],
    ['comments and empty lines', '# first\n\nname: a # short\ndescription:   Does it.  \n', '- a: Does it.'],
    [
      'a folded block',
      'name: a\ndescription: >\n  Does it,\n  and well.\n\n  Always.',
      '- a: Does it, and well. Always.',
    ],
    [
      'a block with all that may stand beside its sign',
      'name: a\ndescription: |2- # why\n  Does: it. # not a comment\n    - well\nlicense: MIT',
      '- a: Does: it. # not a comment - well',
    ],
    ['a block for the name', 'name: >-\n  a\ndescription: >+\n\n  A.\n\n', '- a: A.'],
    ['a text that goes on', 'description: One, # why\n  two\n  three.\nname: a', '- a: One, two three.'],
    ['a text that begins on the next line', 'name:\n  a\ndescription:\n  "One\n  two."', '- a: One two.'],
    ['quotes over several lines', 'name: a\ndescription: "One # one,\n  two."', '- a: One # one, two.'],
    ['a # inside a word', 'name: a\ndescription: Does C#.', '- a: Does C#.'],
    [
      'other keys, whatever is below them',
      'license: MIT\nmetadata:\n  a: 1\n  b:\n    - 2\ntools:\n- x\n- y\nname: a\ndescription: A.\nnote: >\n  long\n  text',
      '- a: A.',
    ],
  ])('reads %s', (_, front, expected) => {
    expect(prompt(`---\n${front}\n---\nBody.`)).toBe(expected);
    expect(prompt(`\ufeff---\r\n${front.replaceAll('\n', '\r\n')}\r\n---\r\nBody.`)).toBe(expected);
  });

  it.each([
    [
      '',
      1,
      'has no front matter. Begin the file with these lines: ---, name: my-skill, description: When to use it., ---',
    ],
    ['# Title\n---\nname: a\n---', 1, 'has no front matter.'],
    ['---\nname: a\ndescription: A.\n', 4, 'ends within its front matter. Close it with a line ---'],
    [
      '---\nname: a\n---\n',
      3,
      'has no "description" in its front matter. Add a line "description: …" above the ---',
    ],
    ['---\ndescription: A.\n---\n', 3, 'has no "name" in its front matter.'],
    ['---\nname: a\nname: b\ndescription: A.\n---', 3, 'repeats the key "name". Remove one of the lines.'],
    ['---\nname:a\n---', 2, 'is not "key: value", with a space after the colon: "name:a"'],
    ['---\nname a\n---', 2, 'is not "key: value"'],
    [
      '---\n  name: a\n---',
      2,
      'is indented, but nothing above it takes indented lines. Remove the indentation.',
    ],
    ['---\nname: a\ndescription: >\n---', 3, 'has no value for "description". Write one.'],
    ['---\nname: a\ndescription: |2-\n\n---', 3, 'has no value for "description".'],
    [
      '---\nname: a\ndescription: >x\n  y\n---',
      3,
      'begins "description" with ">", which means something else in YAML. Write text, in double quotes.',
    ],
    ['---\nname: a\ndescription:\n  - one\n---', 3, 'has a list or a map as "description".'],
    ['---\nname: a\ndescription:\n- one\n---', 3, 'has a list or a map as "description".'],
    ['---\nname: a\ndescription:\n  en: one\n---', 3, 'has a list or a map as "description".'],
    ['---\nname: [a]\ndescription: A.\n---', 2, 'begins "name" with "["'],
    ['---\nname:\ndescription: A.\n---', 2, 'has no value for "name". Write one.'],
    ['---\nname: a\ndescription: # later\n---', 3, 'has no value for "description".'],
    ['---\nname: a\ndescription: " "\n---', 3, 'has no value for "description". Write one.'],
    [
      '---\nname: a\ndescription: "open\n---',
      3,
      'has a value of "description" with quotes that do not close, or an unknown escape: "open',
    ],
    [
      "---\nname: a\ndescription: 'it's'\n---",
      3,
      'has a value of "description" with quotes that do not close',
    ],
    [
      '---\nname: my skill\ndescription: A.\n---',
      2,
      'has the name "my skill". Use 1 to 64 letters, digits, "_", "-" or ".".',
    ],
    [
      `---\nname: a\ndescription: ${'x'.repeat(1025)}\n---`,
      3,
      'has a description of 1025 characters. Use at most 1024',
    ],
  ])('says what to do about %j', (content, line, problem) => {
    const dir = folder({ 'a/SKILL.md': content });
    const file = join(dir, 'a/SKILL.md');
    expect(problemsIn(dir)).toEqual([expect.stringContaining(`${file}:${line} ${problem}`)]);
  });

  it('takes the first of two skills of one name', () => {
    const dir = folder({ 'a/SKILL.md': skill('same', 'A.'), 'b/SKILL.md': skill('same', 'B.') });
    expect(problemsIn(dir)).toEqual([
      expect.stringMatching(/b.SKILL\.md:1 has the same name as .+a: "same"\. Rename one of them\./),
    ]);
    expect(prompt(skill('same', 'A.'))).toBe('- same: A.');
  });
});

describe('a skill that cannot be used', () => {
  const files = {
    'a/SKILL.md': skill('good', 'Works.'),
    'b/SKILL.md': 'no front matter',
    'c/SKILL.md/x': '',
  };

  it('does not affect the others, and is named before and after a run', async () => {
    const dir = folder(files);
    const model = scriptedModel([toolCalls({ name: 'read_skill', args: { name: 'good' } }), text('ok')]);
    const agent = new Agent({ model, middleware: [skills({ dir })] });
    const problem = `${join(dir, 'b/SKILL.md')}:1 has no front matter.`;
    expect(agent.explain().hazards).toEqual([
      {
        id: 'skill-left-out',
        between: ['skills'],
        message: expect.stringContaining(problem),
        fix: expect.any(String),
      },
    ]);
    const result = await agent.run('go');
    expect(model.requests[0]!.systemPrompt.split('\n').at(-1)).toBe('- good: Works.');
    expect(textOf(result.messages[2]!)).toBe('Do good.');
    expect(result.changes).toContainEqual(
      expect.objectContaining({ by: 'skills', what: expect.stringContaining(problem) }),
    );
  });

  it('may be the only one', async () => {
    const dir = folder({ 'b/SKILL.md': '---' });
    const model = scriptedModel(['ok']);
    const { status, changes } = await new Agent({ model, middleware: [skills({ dir })] }).run('go');
    expect(status).toBe('done');
    expect(changes).toEqual([
      expect.objectContaining({
        by: 'skills',
        what: expect.stringContaining('ends within its front matter'),
      }),
    ]);
    expect(model.requests[0]!.tools).toEqual([]);
  });
});

describe('skills()', () => {
  it.each([
    [{}, 'Expected `dir` to be the path of a folder, got undefined.'],
    [{ dir: '' }, 'Expected `dir` to be the path of a folder, got "".'],
    [{ dir: '/nowhere/at/all' }, 'Expected `dir` to be a folder that exists, got "/nowhere/at/all".'],
    [{ dir: join(empty, 'notes.txt') }, 'Expected `dir` to be a folder that exists'],
    [{ dir: empty, maxBytes: 0 }, 'Expected `maxBytes` to be an integer ≥ 1, got 0.'],
    [{ dirs: [] }, 'Unknown option `dirs` of skills(). Did you mean `dir`?'],
  ])('refuses %j', (options, message) => {
    expect(() => skills(options as never)).toThrow(message);
  });
});
