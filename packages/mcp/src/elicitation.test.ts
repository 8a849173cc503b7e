import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { expect, it } from 'vitest';
import { elicitationAnswer } from './elicitation.js';
import { outputValidator } from './validator.js';

const forms = outputValidator(AjvJsonSchemaValidator);
const form = (...fields: object[]) => ({
  requestedSchema: {
    type: 'object',
    properties: Object.fromEntries(fields.map((field, i) => [`f${i}`, field])),
    required: ['f0'],
  },
});

it.each([
  ['text', 'blue', { type: 'string' }, 'blue'],
  ['a number', ' 5.5 ', { type: 'number' }, 5.5],
  ['a yes', 'Yes', { type: 'boolean' }, true],
  ['a no', 'no', { type: 'boolean' }, false],
  ['one of several', 'red', { type: 'string', enum: ['red', 'blue'] }, 'red'],
])('understands %s in plain words', (_, text, field, value) => {
  expect(elicitationAnswer({ type: 'respond', text }, form(field), forms)).toEqual({
    action: 'accept',
    content: { f0: value },
  });
});

it.each([
  ['a number that is none', { type: 'respond', text: 'many' }, [{ type: 'number' }], 'f0 must be number'],
  ['no number', { type: 'respond', text: '' }, [{ type: 'number' }], 'f0 must be number'],
  ['a fraction', { type: 'respond', text: '1.5' }, [{ type: 'integer' }], 'f0 must be integer'],
  ['neither yes nor no', { type: 'respond', text: 'maybe' }, [{ type: 'boolean' }], 'f0 must be boolean'],
  [
    'none of several',
    { type: 'respond', text: 'x' },
    [{ type: 'string', enum: ['a'] }],
    'f0 must be equal to one of',
  ],
  ['a field of another type', { type: 'edit', args: { f0: 5 } }, [{ type: 'string' }], 'f0 must be string'],
  ['a field too few', { type: 'edit', args: {} }, [{ type: 'string' }], "must have required property 'f0'"],
  ['no object', { type: 'edit', args: ['a'] }, [{ type: 'string' }], 'must be an object with f0'],
  ['words for two fields', { type: 'respond', text: 'a b' }, [{}, {}], 'must be an object with f0, f1'],
] as const)('refuses %s before the server sees it', (_, decision, fields, message) => {
  expect(() => elicitationAnswer(decision, form(...fields), forms)).toThrow(
    expect.objectContaining({ code: 'MCP_ANSWER_INVALID', message: expect.stringContaining(message) }),
  );
});

it('sends any object if the form itself is wrong', () => {
  const requestedSchema = { type: 'object', properties: { f0: { type: 'nonsense' } } };
  const answer = elicitationAnswer({ type: 'edit', args: { f0: 'x' } }, { requestedSchema }, forms);
  expect(answer).toEqual({ action: 'accept', content: { f0: 'x' } });
});
