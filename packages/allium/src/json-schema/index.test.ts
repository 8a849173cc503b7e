import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Agent, textOf, tool } from 'allium';
import { jsonSchema } from 'allium/json-schema';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { importWithout } from '../../../../test/import-without.js';
import { watched } from '../../../../test/run-checks.js';

/** Weak references hold their objects until the end of the turn in which they were made. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  await new Promise(setImmediate);
  runInNewContext('gc')();
}

const issues = async (schema: object, value: unknown) => {
  const result = await jsonSchema(schema)['~standard'].validate(value);
  return (result.issues ?? []).map(({ path = [], message }) => `${path.join('.')}: ${message}`);
};

describe('jsonSchema', () => {
  it('is a Standard Schema that exposes its JSON Schema', () => {
    const schema = { type: 'object', properties: { a: { type: 'number' } } };
    const { '~standard': standard } = jsonSchema(schema);
    expect(standard).toMatchObject({ version: 1, vendor: 'allium' });
    expect(standard.jsonSchema!.input({ target: 'draft-2020-12' })).toEqual(schema);
  });

  it('passes values unchanged: no defaults, no coercion, no copy', async () => {
    const schema = jsonSchema({ type: 'object', properties: { a: { type: 'number', default: 1 } } });
    const value = Object.freeze({ b: '2' });
    const result = await schema['~standard'].validate(value);
    expect((result as { value: unknown }).value).toBe(value);
    expect(await issues({ type: 'number' }, '5')).toEqual([': must be number']);
  });

  it('names every issue with its path', async () => {
    const schema = {
      type: 'object',
      properties: {
        user: {
          type: 'object',
          properties: { 'a/b~c': { enum: ['x', 'y'] }, age: { type: 'integer', minimum: 0 } },
          additionalProperties: false,
        },
      },
      required: ['user', 'id'],
    };
    expect(await issues(schema, { user: { 'a/b~c': 'z', age: -1, extra: 1 } })).toEqual([
      ": must have required property 'id'",
      'user: must NOT have additional properties: "extra"',
      'user.a/b~c: must be equal to one of the allowed values: "x", "y"',
      'user.age: must be >= 0',
    ]);
    expect(await issues({ const: 3 }, 4)).toEqual([': must be equal to constant: 3']);
  });

  it('speaks draft 2020-12', async () => {
    const schema = { type: 'array', prefixItems: [{ type: 'string' }] };
    expect(await issues(schema, [1])).toEqual(['0: must be string']);
    const named = { ...schema, $schema: 'https://json-schema.org/draft/2020-12/schema' };
    expect(await issues(named, [1])).toEqual(['0: must be string']);
  });

  it.each([
    'http://json-schema.org/draft-06/schema#',
    'http://json-schema.org/draft-07/schema#',
    'http://json-schema.org/draft-07/schema',
    'https://json-schema.org/draft-06/schema',
    'https://json-schema.org/draft-07/schema#',
  ])('speaks %s where $schema says so, and shows it as it is', async ($schema) => {
    const schema = { $schema, type: 'array', items: [{ type: 'string' }] };
    expect(await issues(schema, [1])).toEqual(['0: must be string']);
    expect(await issues(schema, ['a', 1])).toEqual([]);
    expect(jsonSchema(schema)['~standard'].jsonSchema!.input({ target: 'draft-07' })).toEqual(schema);
    await expect(jsonSchema({ ...schema, items: 'string' })['~standard'].validate([])).rejects.toMatchObject({
      code: 'INVALID_TOOL',
    });
  });

  it.each(['https://json-schema.org/draft/2019-09/schema', 'http://json-schema.org/draft/2019-09/schema#'])(
    'speaks %s where $schema says so',
    async ($schema) => {
      const schema = { $schema, type: 'array', items: [{ type: 'string' }], unevaluatedItems: false };
      expect(await issues(schema, [1])).toEqual(['0: must be string']);
      expect(await issues(schema, ['a', 1])).toEqual([': must NOT have more than 1 items']);
    },
  );

  it('knows 2020-12 however its name is written', async () => {
    const schema = {
      $schema: 'http://json-schema.org/draft/2020-12/schema#',
      prefixItems: [{ type: 'string' }],
    };
    expect(await issues(schema, [1])).toEqual(['0: must be string']);
  });

  it('takes patterns with the escapes of other languages, and reads others as Unicode', async () => {
    const schema = {
      properties: { url: { pattern: '^https\\:\\/\\/' }, name: { pattern: '^\\p{L}+$' } },
      patternProperties: { '^x\\-': { type: 'number' } },
    };
    expect(await issues(schema, { url: 'https://a', name: 'Zoë', 'x-1': 1 })).toEqual([]);
    expect(await issues(schema, { url: 'ftp://a', name: '1', 'x-1': 'a' })).toHaveLength(3);
    await expect(jsonSchema({ pattern: '(' })['~standard'].validate('a')).rejects.toMatchObject({
      code: 'INVALID_TOOL',
      message: expect.stringContaining('Invalid regular expression'),
    });
  });

  it.each(['http://json-schema.org/draft-04/schema#', 'https://example.com/draft-07/mine'])(
    'refuses %s, which it does not speak',
    async ($schema) => {
      await expect(jsonSchema({ $schema })['~standard'].validate(1)).rejects.toMatchObject({
        code: 'INVALID_TOOL',
        message: expect.stringContaining($schema),
      });
    },
  );

  it('follows local references, also where two schemas share an $id', async () => {
    const schema = {
      $id: 'https://example.com/node',
      $defs: { n: { type: 'number' } },
      properties: { a: { $ref: '#/$defs/n' } },
    };
    expect(await issues(schema, { a: 'x' })).toEqual(['a: must be number']);
    expect(await issues({ ...schema, required: ['b'] }, {})).toEqual([": must have required property 'b'"]);
  });

  // Trees, as zod and others describe them.
  it.each<[string, object]>([
    ['', {}],
    [' with an $id', { $id: 'https://example.com/tree' }],
    [' of draft 07', { $schema: 'http://json-schema.org/draft-07/schema#' }],
  ])('follows references to the schema itself%s', async (_, more) => {
    const tree = {
      ...more,
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
      required: ['name'],
    };
    expect(await issues(tree, { name: 'a', children: [{ name: 'b' }] })).toEqual([]);
    expect(await issues(tree, { name: 'a', children: [{ name: 1 }] })).toEqual([
      'children.0.name: must be string',
    ]);
  });

  it('ignores formats it does not know', async () => {
    expect(await issues({ type: 'string', format: 'postcode' }, 'x')).toEqual([]);
  });

  it('compiles once and then validates synchronously', async () => {
    const { validate } = jsonSchema({ type: 'string' })['~standard'];
    expect(await validate('a')).toEqual({ value: 'a' });
    expect(validate('b')).toEqual({ value: 'b' });
    expect(validate(1)).toMatchObject({ issues: [{ message: 'must be string' }] });
  });

  it.each([{}, { $schema: 'http://json-schema.org/draft-07/schema#' }])(
    'does not keep an unused schema in memory, %j',
    async (dialect) => {
      const use = async (): Promise<WeakRef<object>> => {
        const made = jsonSchema({
          ...dialect,
          $id: 'https://example.com/forgotten',
          properties: { a: { $ref: '#/definitions/a' } },
          definitions: { a: { enum: ['x'] } },
        });
        await made['~standard'].validate({ a: 'x' });
        return new WeakRef(made['~standard'].jsonSchema!.input({ target: 'draft-07' }).definitions as object);
      };
      const schemas = await Promise.all(Array.from({ length: 20 }, use));
      await collectGarbage();
      // The engine may hold on to the latest of them for a while; whoever kept schemas would keep all.
      expect(schemas.filter((one) => one.deref() !== undefined).length).toBeLessThan(10);
    },
  );

  it('keeps a copy, so later changes to the original have no effect', async () => {
    const original: Record<string, unknown> = { type: 'string' };
    const made = jsonSchema(original);
    original.type = 'number';
    expect(await made['~standard'].validate('a')).toEqual({ value: 'a' });
  });

  it('refuses anything but a schema', async () => {
    for (const bad of [undefined, null, 'string', [], 5, jsonSchema({})]) {
      expect(() => jsonSchema(bad as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    }
    await expect(jsonSchema({ type: 'strng' })['~standard'].validate(1)).rejects.toMatchObject({
      code: 'INVALID_TOOL',
      message: expect.stringContaining('This is not a JSON Schema'),
    });
  });

  it('refuses $async, with which every value would pass', async () => {
    const schema = { $async: true, type: 'number' };
    const inside = { $defs: { one: schema }, properties: { a: schema, b: { $ref: '#/$defs/one' } } };
    for (const bad of [schema, inside])
      for (const value of [1, 'x', { a: 'x' }])
        await expect(jsonSchema(bad)['~standard'].validate(value)).rejects.toMatchObject({
          code: 'INVALID_TOOL',
          message: expect.stringContaining('This is not a JSON Schema'),
        });
    expect(await issues({ ...schema, $async: false }, 'x')).toEqual([': must be number']);
  });
});

describe('without ajv', () => {
  it('fails the run with MISSING_DEPENDENCY, which names the command, and leaves a valid history', async () => {
    const here = (file: string) => new URL(file, import.meta.url);
    const fresh = await importWithout<typeof import('./index.js')>('ajv', here('index.ts'));
    const { Agent: FreshAgent, tool: freshTool } = await importWithout<typeof import('allium')>(
      'ajv',
      here('../index.ts'),
    );
    const one = freshTool({ name: 'one', description: '', input: fresh.jsonSchema({}), execute: () => 'x' });
    const agent = new FreshAgent({
      model: scriptedModel([toolCalls({ name: 'one' }, { name: 'one', id: 'b' })]),
      tools: [one],
    });
    const error = await agent.run('go').catch((thrown) => thrown);
    expect(error).toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringContaining('npm install ajv'),
    });
    expect(error.result.messages.map(({ role }: { role: string }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
    ]);
  });
});

it('makes a tool whose arguments are checked', async () => {
  const weather = tool({
    name: 'weather',
    description: '',
    input: jsonSchema<{ city: string }>({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    }),
    execute: ({ city }) => `Sunny in ${city}.`,
  });
  const model = scriptedModel([
    toolCalls({ name: 'weather', args: { city: 'Oslo' }, id: '1' }, { name: 'weather', args: {}, id: '2' }),
    text('end'),
  ]);
  const { result } = await watched(new Agent({ model, tools: [weather] }), 'go');
  expect(result.messages.slice(2, 4).map(textOf)).toEqual([
    'Sunny in Oslo.',
    'Invalid arguments for "weather":\nmust have required property \'city\'',
  ]);
});
