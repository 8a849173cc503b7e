/** Cancelling over HTTP a run that waits for an answer. */
import { Agent, memoryStore, tool } from 'allium';
import { serve } from 'allium/http';
import { scriptedModel, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

it('cancelling a suspended run ends it, closes its question and refuses a later answer as too late', async () => {
  const ran: string[] = [];
  const agent = new Agent({
    store: memoryStore(),
    model: scriptedModel([toolCalls({ name: 'pay', args: {}, id: 'c' })]),
    middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: {} }) }],
    tools: [
      tool({
        name: 'pay',
        description: '',
        input: z.object({}),
        execute: () => {
          ran.push('pay');
          return 'paid';
        },
      }),
    ],
  });
  const handler = serve({ agents: { a: agent }, authorize: () => ({}) });
  const post = (path: string, body: object) =>
    handler(
      new Request(`http://x${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  const answer = await post('/sessions', { input: 'go', agent: 'a' });
  const started = (await answer.json()) as { sessionId: string };
  expect(started).toMatchObject({ status: 'suspended' });
  const session = agent.session(started.sessionId);
  const [request] = await session.pending();
  expect((await post(`/sessions/${session.id}/cancel`, { reason: 'Too dear.' })).status).toBe(204);
  expect(await session.pending()).toEqual([]);
  const late = await post(`/sessions/${session.id}/answers`, {
    answers: { [request!.id]: { type: 'approve' } },
  });
  expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([
    409,
    'REQUEST_UNKNOWN',
  ]);
  expect(ran).toEqual([]);
});
