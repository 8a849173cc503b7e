/** What every server of examples/http has to do. */
import { alliumClient, messageText } from 'allium/http/client';
import { expect } from 'vitest';

/** Asks, reads the events, goes on, and is refused without a token. */
export async function tryExample(origin: string, send: typeof fetch = fetch): Promise<void> {
  const baseUrl = `${origin}/api/agent`;
  const client = alliumClient({ baseUrl, fetch: send, headers: { authorization: 'Bearer secret-of-ann' } });
  const run = client.run('What is the forecast for Bergen?');
  const types = new Set<string>();
  for await (const { event } of run) types.add(event.type);
  expect([...types]).toEqual(expect.arrayContaining(['message_update', 'tool_execution_end', 'agent_end']));
  const { sessionId, text, status } = await run.result;
  expect([status, text]).toEqual(['done', expect.stringContaining('rain')]);
  const { messages } = await client.messages(sessionId);
  expect(messageText(messages[0]!)).toBe('What is the forecast for Bergen?');
  await client.delete(sessionId);
  await expect(client.messages(sessionId)).rejects.toMatchObject({ status: 404 });
  await expect(alliumClient({ baseUrl, fetch: send }).sessions()).rejects.toMatchObject({ status: 401 });
  const large = client.run('x'.repeat(2_000_000));
  await expect(large.result).rejects.toMatchObject({ status: 413 });
}
