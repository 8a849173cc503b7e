// What a person may type in answer to a question.

import type { PendingRequest } from 'allium';
import { expect, it } from 'vitest';
import { readAnswer } from './answer.js';

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
