// One conversation on two wires: what each is sent has to be valid there, and nothing of the other may be in it.
import { Agent, memoryStore, tool } from 'allium';
import { fallback } from 'allium/middleware/fallback';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Body, type RawServer, rawServer, refuses, streams } from '../test/raw-server.js';
import { anthropic, google, openaiChat, openaiResponses, textFrames } from '../test/wires.js';

let openaiServer: RawServer;
let otherServer: RawServer;
beforeAll(async () => {
  [openaiServer, otherServer] = [await rawServer(), await rawServer()];
});
afterAll(() => Promise.all([openaiServer.stop(), otherServer.stop()]));

const look = tool({
  name: 'look',
  description: 'Looks at a place.',
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `${at} is fine`,
});

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

/** An answer of OpenAI that thinks and calls. */
function openaiThinks(call: string): string[] {
  const item = { type: 'reasoning', id: 'rs_secret', summary: [], encrypted_content: null };
  const [created, ...rest] = openaiResponses.calls([{ id: call, name: 'look', input: '{"at":"here"}' }]);
  return [
    created!,
    data({ type: 'response.output_item.added', output_index: 9, item }),
    data({ type: 'response.reasoning_summary_part.added', item_id: item.id, summary_index: 0 }),
    data({
      type: 'response.reasoning_summary_text.delta',
      item_id: item.id,
      summary_index: 0,
      delta: 'OpenAI thinks.',
    }),
    data({ type: 'response.output_item.done', output_index: 9, item }),
    ...rest,
  ];
}

/** An answer of Anthropic that thinks and calls. */
function anthropicThinks(call: string): string[] {
  const [started, ...rest] = anthropic.calls([{ id: call, name: 'look', input: '{"at":"there"}' }]);
  const block = (type: string, more: object) => `event: ${type}\n${data({ type, index: 9, ...more })}`;
  return [
    started!,
    block('content_block_start', { content_block: { type: 'thinking', thinking: '', signature: '' } }),
    block('content_block_delta', { delta: { type: 'thinking_delta', thinking: 'Anthropic thinks.' } }),
    block('content_block_delta', { delta: { type: 'signature_delta', signature: 'seal-of-anthropic' } }),
    block('content_block_stop', {}),
    ...rest,
  ];
}

/** Every call has its result behind it, and no result stands alone. */
function expectOpenai(body: Body): void {
  const open = new Set<string>();
  for (const item of body.input) {
    if (item.type === 'function_call') open.add(item.call_id);
    if (item.type === 'item_reference' && item.id.startsWith('fc_')) open.add(item.id.slice(3));
    if (item.type === 'function_call_output') expect(open.delete(item.call_id), item.call_id).toBe(true);
  }
  expect([...open]).toEqual([]);
  expect(JSON.stringify(body)).not.toMatch(/anthropic/i);
}

/** Users and the model take turns, and the results of a turn come at once after its calls. */
function expectAnthropic(body: Body): void {
  const roles = body.messages.map(({ role }: Body) => role);
  expect(roles).toEqual(roles.map((_: string, i: number) => (i % 2 === 0 ? 'user' : 'assistant')));
  for (const [i, { role, content }] of body.messages.entries()) {
    if (role !== 'assistant') continue;
    const ids = (parts: Body[], type: string, key: string) =>
      parts.filter((part) => part.type === type).map((part) => part[key]);
    const results = ids(body.messages[i + 1]?.content ?? [], 'tool_result', 'tool_use_id');
    expect(results).toEqual(ids(content, 'tool_use', 'id'));
  }
  expect(JSON.stringify(body)).not.toMatch(/openai|rs_secret|fc_|itemId/i);
}

const provider = {
  openai: { user: 'openai-only', reasoningSummary: 'auto' },
  anthropic: { metadata: { userId: 'anthropic-only' } },
};

describe('a conversation that changes vendors', () => {
  it('is valid on both wires when one fails in the middle of a tool loop, and when it comes back', async () => {
    openaiServer.reply(
      streams(openaiThinks('call_1')),
      refuses(500, openaiResponses.error('server_error')),
      streams(openaiThinks('call_3')),
      streams(textFrames(openaiResponses, 'Back again.')),
    );
    otherServer.reply(streams(anthropicThinks('toolu_2')), streams(textFrames(anthropic, 'All is fine.')));
    const spare = anthropic.model(otherServer.url);
    const store = memoryStore();
    const make = () =>
      new Agent({
        model: openaiResponses.model(openaiServer.url),
        middleware: [fallback({ models: [spare], sticky: true })],
        tools: [look],
        settings: { provider },
        systemPrompt: 'Look well.',
        store,
      });
    const first = await make().session('s').run('Look around.');
    expect(first.text).toBe('All is fine.');
    expect(
      first.messages.flatMap((message) => (message.role === 'assistant' ? [message.model] : [])),
    ).toEqual(['openai/gpt-5', 'anthropic/claude-sonnet-4-5', 'anthropic/claude-sonnet-4-5']);
    // Another process goes on, with OpenAI.
    const second = await make().session('s').run('And again.');
    expect(second.text).toBe('Back again.');

    for (const { body } of openaiServer.received) expectOpenai(body);
    for (const { body } of otherServer.received) expectAnthropic(body);
    expect(openaiServer.received.every(({ body }) => body.user === 'openai-only')).toBe(true);
    expect(otherServer.received.every(({ body }) => body.metadata.user_id === 'anthropic-only')).toBe(true);

    // Each gets its own thinking back, seal and all.
    const [, toAnthropic] = otherServer.received;
    expect(JSON.stringify(toAnthropic!.body.messages)).toContain(
      JSON.stringify({ type: 'thinking', thinking: 'Anthropic thinks.', signature: 'seal-of-anthropic' }),
    );
    const toOpenai = openaiServer.received.at(-1)!.body.input;
    expect(toOpenai.filter(({ id }: Body) => id === 'rs_secret').length).toBeGreaterThan(0);
    expect(JSON.stringify(toOpenai)).toContain('All is fine.');
  });

  it("sends Google's signatures back to Google and nowhere else", async () => {
    otherServer.reply(
      streams(google.calls([{ id: '', name: 'look', input: '{"at":"here"}' }])),
      streams(textFrames(google, 'Fine.')),
    );
    openaiServer.reply(streams(textFrames(openaiChat, 'Fine, too.')));
    const store = memoryStore();
    const session = (model = google.model(otherServer.url)) =>
      new Agent({ model, tools: [look], store }).session('s');
    await session().run('Look.');
    expect(JSON.stringify(otherServer.received[1]!.body)).toContain('"thoughtSignature":"seal-look"');
    await session(openaiChat.model(openaiServer.url)).run('You, too.');
    expect(JSON.stringify(openaiServer.received[0]!.body)).not.toContain('seal-look');
    await session().run('Once more.');
    expect(JSON.stringify(otherServer.received[2]!.body)).toContain('"thoughtSignature":"seal-look"');
  });
});

describe('cache markers', () => {
  it('reach Anthropic on the system prompt, messages and results, also after a resume', async () => {
    otherServer.reply(
      streams(anthropic.calls([{ id: 'toolu_1', name: 'look', input: '{"at":"here"}' }])),
      streams(textFrames(anthropic, 'Fine.')),
    );
    const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } };
    const store = memoryStore();
    const make = () =>
      new Agent({
        model: anthropic.model(otherServer.url, { systemOptions: mark }),
        systemPrompt: 'Look well.',
        tools: [look],
        store,
      });
    await make()
      .session('s')
      .run([{ type: 'text', text: 'A long text.', metadata: { provider: mark } }]);
    await make().session('s').run('And now?');
    const { body } = otherServer.received.at(-1)!;
    const marked = { cache_control: { type: 'ephemeral' } };
    expect(body.system).toMatchObject([{ text: 'Look well.', ...marked }]);
    expect(body.messages[0].content).toMatchObject([{ text: 'A long text.', ...marked }]);
    expect(JSON.stringify(body.messages.slice(1))).not.toContain('cache_control');
  });
});
