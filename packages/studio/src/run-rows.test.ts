/** How changes that come in live meet a filtered list of runs. */
import { expect, it } from 'vitest';
import { updated } from '../web/src/run-rows.js';
import type { RunRow } from './wire.js';

const USAGE = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };
const row = (runId: string, more: Partial<RunRow> = {}): RunRow => ({
  sessionId: 's',
  runId,
  status: 'running',
  startedAt: 0,
  updatedAt: 0,
  input: 'Hello',
  turns: 1,
  toolCalls: 0,
  toolErrors: 0,
  usage: USAGE,
  models: [],
  verdicts: [],
  waiting: 0,
  seq: 1,
  ...more,
});
const ids = (rows: readonly RunRow[]) => rows.map(({ runId }) => runId);

it('a run whose messages were searched stays when it goes on', () => {
  const later = row('a', { status: 'done' });
  expect(updated([row('a'), row('b')], [later], { text: 'refund' })).toEqual([later, row('b')]);
  expect(ids(updated([row('a')], [later], { text: 'refund', status: 'running' }))).toEqual([]);
});

it('a new run comes in if its row says the text and fits the other filters', () => {
  const query = { text: 'REFUND', status: 'error' };
  const fresh = [
    row('asks', { status: 'error', input: 'A refund, please' }),
    row('refund-1', { status: 'error' }),
    row('stops', { status: 'error', stop: { reason: 'guardrail', message: 'No refund.' } }),
    row('other', { status: 'error' }),
    row('runs', { input: 'A refund, please' }),
  ];
  expect(ids(updated([row('a')], fresh, query)).sort()).toEqual(['a', 'asks', 'refund-1', 'stops']);
});

it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
  ['no filter', {}, ['own', 'theirs']],
  ['a tenant', { tenant: 'acme' }, ['own']],
  ['sub-agents', { children: '1' }, ['own', 'theirs', 'child']],
  ['a text with spaces around it', { text: ' OWN ' }, ['own']],
  ['a cost that is no number', { minCostUsd: 'much' }, ['own', 'theirs']],
])('new runs that come in with %s', (_, query, shown) => {
  const fresh = [
    row('own', { tenant: 'acme' }),
    row('theirs', { tenant: 'b' }),
    row('child', { child: true }),
  ];
  expect(ids(updated([], fresh, query))).toEqual(shown);
});
