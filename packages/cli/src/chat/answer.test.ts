// What a person may type in answer to a question.

import { Agent, type Decision, type PendingRequest } from 'allium';
import { scriptedModel } from 'allium/testing';
import { expect, it } from 'vitest';
import { problemWith } from '../inbox.js';
import { approveAll, takes } from '../view/ask.js';
import { howToAnswer, readAnswer } from './answer.js';

const request = (kind: 'ask' | 'suspend'): PendingRequest => ({
  id: 'q',
  runId: 'r',
  callId: 'c',
  toolName: 'pay',
  arguments: '{}',
  kind,
  hash: 'h',
  createdAt: 0,
});

it.each([
  ['y', { type: 'approve', hash: 'h' }],
  [' YES ', { type: 'approve', hash: 'h' }],
  ['a', { type: 'approve', hash: 'h', remember: 'tool' }],
  ['Always', { type: 'approve', hash: 'h', remember: 'tool' }],
  ['s', { type: 'approve', hash: 'h', remember: 'arguments' }],
  ['n', { type: 'reject', hash: 'h' }],
  ['no, not today', { type: 'reject', hash: 'h', reason: 'not today' }],
  ['no not today', { type: 'reject', hash: 'h', reason: 'not today' }],
  ['e {"a": 1}', { type: 'edit', hash: 'h', args: { a: 1 } }],
  ['edit', { problem: 'That is not JSON: (nothing)' }],
  ['l', 'later'],
  ['', { problem: expect.stringContaining('[y]es') }],
  ['what', { problem: expect.stringContaining('[y]es') }],
])('to "may this run?": %j', (line, expected) => {
  expect(readAnswer(request('ask'), line)).toEqual(expected);
});

it.each([
  ['y', { type: 'respond', hash: 'h', text: 'y' }],
  ['the blue one', { type: 'respond', hash: 'h', text: 'the blue one' }],
  ['no idea', { type: 'reject', hash: 'h', reason: 'idea' }],
  ['later', 'later'],
  ['', { problem: expect.stringContaining('type the answer') }],
])('to a question of a tool: %j', (line, expected) => {
  expect(readAnswer(request('suspend'), line)).toEqual(expected);
});

const ANSWERS = ['approve', 'remember', 'edit', 'reject', 'respond'] as const;

it.each<[Partial<PendingRequest>, string, readonly string[]]>([
  [
    { kind: 'ask' },
    '[y]es, [a]lways in this session, [s]ame arguments always, [n]o and why, [e]dit {"new":"arguments"}, [l]ater',
    ['approve', 'remember', 'edit', 'reject'],
  ],
  [{ kind: 'suspend' }, 'type the answer; [n]o and why; [l]ater', ['approve', 'reject', 'respond']],
  [
    { kind: 'ask', decisions: ['approve', 'reject'], remember: false },
    '[y]es, [n]o and why, [l]ater',
    ['approve', 'reject'],
  ],
  [{ kind: 'ask', decisions: ['respond'] }, 'or type the answer, [l]ater', ['respond']],
  [{ kind: 'suspend', decisions: ['respond'] }, 'type the answer; [l]ater', ['respond']],
  [
    { kind: 'suspend', decisions: ['approve', 'reject'] },
    '[y]es, [n]o and why, [l]ater',
    ['approve', 'reject'],
  ],
])('offers the answers that a question takes: %j', (given, how, offered) => {
  const asked = { ...request('ask'), ...given };
  expect(howToAnswer(asked)).toBe(how);
  expect(ANSWERS.filter((answer) => takes(asked, answer))).toEqual(offered);
});

it('refuses any other answer', async () => {
  const strict: PendingRequest = { ...request('ask'), decisions: ['reject'], remember: false };
  for (const line of ['y', 'a', 's', 'e {}', 'anything'])
    expect(readAnswer(strict, line)).toEqual({ problem: 'Please answer: [n]o and why, [l]ater' });
  expect(await approveAll('--yes')(undefined as never, strict)).toBeUndefined();
  const agent = new Agent({ model: scriptedModel([]) });
  const approve: Decision = { type: 'approve', remember: 'tool' };
  expect(await problemWith(agent, strict, approve)).toContain('takes reject, and not approve');
  const once = { ...request('ask'), remember: false };
  expect(await problemWith(agent, once, approve)).toContain('asked every time');
  expect(await problemWith(agent, once, { type: 'approve' })).toBeUndefined();
});
