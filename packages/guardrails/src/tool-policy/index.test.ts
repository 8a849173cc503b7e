import { Agent, memoryStore, textOf, tool } from 'allium';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type ToolPolicyOptions, toolPolicy } from './index.js';

testMiddleware(() => toolPolicy({ deny: ['nosuch_*'] }), { name: 'tool-policy', describe, it });
testMiddleware(() => toolPolicy({ deny: ['kit_*'] }), {
  name: 'tool-policy that refuses',
  describe,
  it,
  neutral: () => toolPolicy({ deny: ['nosuch_*'] }),
  handles: ['tool-errors'],
  skip: { 'control-signals': 'The tools that stop never run.' },
});

const made = (name: string) =>
  tool({ name, description: 'A tool.', input: z.any(), execute: () => `ran ${name}` });

/** What the model reads after a call. */
async function called(
  name: string,
  args: object,
  options: ToolPolicyOptions,
  run: object = {},
): Promise<string> {
  const model = scriptedModel([toolCalls({ name, args }), text('Done.')]);
  const tools = [made('read_file'), made('delete_file'), made('shell')];
  const result = await new Agent({ model, tools, middleware: [toolPolicy(options)] }).run('Go', run as never);
  if (result.status === 'suspended') return 'asked';
  return textOf(result.messages.find(({ role }) => role === 'tool')!);
}

describe('tool-policy', () => {
  it('refuses by name, with stars', async () => {
    const options = { deny: ['delete_*'] };
    expect(await called('read_file', {}, options)).toBe('ran read_file');
    expect(await called('delete_file', {}, options)).toContain(
      'Calling "delete_file" is not allowed. The tool policy says so (deny "delete_*").',
    );
  });

  it('refuses everything else once it allows something', async () => {
    expect(await called('shell', {}, { allow: ['read_*'] })).toContain(
      'No rule of the tool policy allows it.',
    );
    expect(await called('shell', {}, { allow: ['read_*'], otherwise: 'allow' })).toBe('ran shell');
  });

  it('refuses arguments if any of them does not match', async () => {
    const options: ToolPolicyOptions = {
      args: { '*_file': { path: '^/tmp/' }, shell: { command: /^ls\b/ } },
    };
    expect(await called('read_file', { path: '/tmp/a' }, options)).toBe('ran read_file');
    expect(await called('read_file', { path: ['/tmp/a', '/tmp/b'] }, options)).toBe('ran read_file');
    expect(await called('read_file', {}, options)).toBe('ran read_file');
    expect(await called('read_file', { path: ['/tmp/a', '/etc/passwd'] }, options)).toContain(
      'Calling "read_file" is not allowed. Its argument "path" doesn\'t match what the tool policy allows.',
    );
    expect(await called('shell', { command: 'rm -rf /' }, options)).toContain('Its argument "command"');
    expect(await called('shell', { command: 'ls' }, { ...options, allow: ['shell'] })).toBe('ran shell');
    expect(await called('shell', { command: 'rm' }, { ...options, allow: ['shell'] })).toContain(
      'not allowed',
    );
    expect(() => toolPolicy({ args: { shell: { command: '(' } } })).toThrow('args.shell.command');
  });

  it('looks at arguments at any depth; the first rule that fits decides', async () => {
    const options: ToolPolicyOptions = {
      rules: [
        { effect: 'allow', tools: 'shell', args: { command: '^ls( |$)' } },
        { effect: 'deny', tools: 'shell', args: { '*': /\bsudo\b/i }, reason: 'Never as root.' },
        { effect: 'ask', tools: ['shell'] },
        { effect: 'allow' },
      ],
    };
    expect(await called('shell', { command: 'ls -l' }, options)).toBe('ran shell');
    expect(await called('shell', { command: 'x', env: [{ next: 'SUDO rm' }] }, options)).toContain(
      'Never as root.',
    );
    expect(await called('shell', { command: 'cat x' }, options)).toBe('asked');
    expect(await called('read_file', {}, options)).toBe('ran read_file');
  });

  it('reads arguments by path', async () => {
    const rules: ToolPolicyOptions['rules'] = [{ effect: 'deny', args: { 'items.path': '^/etc' } }];
    expect(
      await called('read_file', { items: [{ path: '/tmp' }, { path: '/etc/passwd' }] }, { rules }),
    ).toContain('(rule 1)');
    expect(await called('read_file', { items: [{ path: '/tmp' }], path: '/etc' }, { rules })).toBe(
      'ran read_file',
    );
  });

  it('allows only if every text at the path fits', async () => {
    const options: ToolPolicyOptions = {
      rules: [{ effect: 'allow', tools: 'read_file', args: { path: '^/safe/' } }],
    };
    expect(await called('read_file', { path: ['/safe/a', '/safe/b'] }, options)).toBe('ran read_file');
    const bad = [
      { path: ['/safe/a', '/etc/passwd'] },
      { path: { '/etc/passwd': '/safe/a' } },
      { path: [] },
      { path: null },
      {},
    ];
    for (const args of bad) expect(await called('read_file', args, options)).toContain('No rule');
    const every: ToolPolicyOptions = { rules: [{ effect: 'allow', args: { '*': '^/safe/' } }] };
    expect(await called('read_file', { a: '/safe/a', b: ['/safe/b'] }, every)).toBe('ran read_file');
    expect(await called('read_file', { a: '/safe/a', b: '/etc' }, every)).toContain('No rule');
  });

  it('finds arguments with dots in their names, and nothing that an object inherits', async () => {
    const rules: ToolPolicyOptions['rules'] = [{ effect: 'deny', args: { 'a.b.c': 'sudo' } }];
    for (const args of [{ 'a.b.c': 'sudo' }, { a: { 'b.c': 'sudo' } }, { 'a.b': [{ c: 'sudo' }] }])
      expect(await called('shell', args, { rules })).toContain('(rule 1)');
    const inherited: ToolPolicyOptions['rules'] = [
      { effect: 'deny', args: { 'constructor.name': 'Object' } },
      { effect: 'deny', args: { 'a.length': '1' } },
    ];
    expect(await called('shell', { a: ['x'] }, { rules: inherited })).toBe('ran shell');
  });

  it('asks a person, who answers as the rule says, once or for the session', async () => {
    const store = memoryStore();
    const agent = (rule: object) =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'shell', args: { n: 1 } }), text('Done.')]),
        tools: [made('shell')],
        store,
        middleware: [toolPolicy({ rules: [{ effect: 'ask', tools: 'shell', ...rule }] })],
      });
    const strict = { decisions: ['approve', 'reject'], remember: false };
    const { pending } = await agent(strict).session('s').run('Go');
    expect(pending).toMatchObject([{ by: 'tool-policy', ...strict }]);
    const always = { type: 'approve', remember: 'tool' } as const;
    for (const decision of [always, { type: 'respond', text: 'No.' } as const])
      await expect(agent(strict).session('s').answer(pending[0]!.id, decision)).rejects.toMatchObject({
        code: 'DECISION_NOT_ALLOWED',
      });
    await agent({})
      .session('t')
      .run('Go', { onRequest: () => always });
    expect((await agent({}).session('t').run('Go')).status).toBe('done');
    // What may not be remembered is asked whatever was remembered.
    expect((await agent(strict).session('t').run('Go')).status).toBe('suspended');
  });

  it('knows roles and tenants', async () => {
    const rules: ToolPolicyOptions['rules'] = [
      { effect: 'allow', tools: 'shell', roles: 'admin' },
      { effect: 'allow', tools: 'shell', tenants: ['lab'] },
      { effect: 'deny', tools: 'shell', reason: 'Admins only.' },
    ];
    expect(await called('shell', {}, { rules, otherwise: 'allow' })).toContain('Admins only.');
    expect(await called('shell', {}, { rules }, { metadata: { role: 'admin' } })).toBe('ran shell');
    expect(await called('shell', {}, { rules }, { metadata: { roles: ['x', 'admin'] } })).toBe('ran shell');
    expect(await called('shell', {}, { rules, roles: () => 'admin' })).toBe('ran shell');
  });

  it('refuses the call if the roles come as a promise, and lets its failure end nothing', async () => {
    const rules: ToolPolicyOptions['rules'] = [{ effect: 'deny', tools: 'shell', roles: 'guest' }];
    const roles = (() => Promise.reject(new Error('no such user'))) as never;
    expect(await called('shell', {}, { rules, roles })).toContain('A guard failed');
  });

  it.each([
    [{}, 'Expected `rules` to be a rule at least'],
    [{ rules: [{ effect: 'maybe' }] }, 'Expected `rules[0].effect` to be'],
    [{ rules: [{ effect: 'deny', remember: false }] }, "Expected `rules[0].effect` to be 'ask' beside"],
    [
      { rules: [{ effect: 'deny', args: { x: '(?=a)' } }] },
      'Expected `rules[0].args.x` to be a pattern that runs in linear time',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => toolPolicy(options as never)).toThrow(message);
  });
});
