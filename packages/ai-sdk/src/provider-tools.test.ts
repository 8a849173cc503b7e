// Tools that the provider runs itself, over the wire: they are shown, not run, and go back to where they came from.
import { anthropic as anthropicPackage } from '@ai-sdk/anthropic';
import { openai as openaiPackage } from '@ai-sdk/openai';
import { Agent, type AssistantMessage } from 'allium';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Body, type RawServer, rawServer, streams } from '../test/raw-server.js';
import { anthropic, openaiResponses, textFrames } from '../test/wires.js';

let server: RawServer;
beforeAll(async () => {
  server = await rawServer();
});
afterAll(() => server.stop());

const data = (value: { type: string } & Body) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

it('Anthropic searches the web', async () => {
  const found = {
    type: 'web_search_result',
    url: 'https://example.com',
    title: 'Example',
    encrypted_content: 'enc',
    page_age: null,
  };
  const blocks: [Body, Body?][] = [
    [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
      { type: 'input_json_delta', partial_json: '{"query":"x"}' },
    ],
    [{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [found] }],
    [
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'Found it.' },
    ],
  ];
  const [started, ...rest] = textFrames(anthropic);
  const ended = rest.slice(-2);
  const frames = blocks.flatMap(([content_block, delta], index) => [
    data({ type: 'content_block_start', index, content_block }),
    ...(delta ? [data({ type: 'content_block_delta', index, delta })] : []),
    data({ type: 'content_block_stop', index }),
  ]);
  server.reply(streams([started!, ...frames, ...ended]), streams(textFrames(anthropic, 'Gladly.')));

  const providerTools = { web_search: anthropicPackage.tools.webSearch_20250305({ maxUses: 2 }) };
  const session = new Agent({ model: anthropic.model(server.url, { providerTools }) }).session('s');
  const { messages, text } = await session.run('Search.');
  expect(text).toBe('Found it.');
  const { content, stopReason } = messages.at(-1) as AssistantMessage;
  expect(stopReason).toBe('stop');
  expect(content.map((part) => (part.type === 'provider' ? part.kind : part.type))).toEqual([
    'tool-call',
    'tool-result',
    'source',
    'text',
  ]);
  await session.run('Thanks.');

  const [first, second] = server.received.map(({ body }) => body);
  expect(first.tools).toEqual([{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }]);
  expect(second.messages[1].content).toMatchObject([
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [found] },
    { type: 'text', text: 'Found it.' },
  ]);
});

it('OpenAI searches the web', async () => {
  const item = {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'x', sources: null },
  };
  const [created, ...rest] = textFrames(openaiResponses, 'Found it.');
  const frames = [
    created!,
    data({ type: 'response.output_item.added', output_index: 5, item: { ...item, status: 'in_progress' } }),
    data({ type: 'response.output_item.done', output_index: 5, item }),
    ...rest,
  ];
  server.reply(streams(frames), streams(textFrames(openaiResponses, 'Gladly.')));
  const providerTools = { web_search: openaiPackage.tools.webSearch({}) };
  const session = new Agent({ model: openaiResponses.model(server.url, { providerTools }) }).session('s');
  const { messages, text } = await session.run('Search.');
  expect(text).toBe('Found it.');
  expect(messages.at(-1)?.content).toMatchObject([
    { type: 'provider', kind: 'tool-call', value: { toolCallId: 'ws_1', toolName: 'web_search' } },
    { type: 'provider', kind: 'tool-result', value: { toolCallId: 'ws_1' } },
    { type: 'text', text: 'Found it.', metadata: { provider: { openai: { itemId: 'msg_1' } } } },
  ]);
  await session.run('Thanks.');
  const { body } = server.received[1]!;
  expect(server.received[0]!.body.tools).toMatchObject([{ type: 'web_search' }]);
  expect(body.input).toContainEqual({ type: 'item_reference', id: 'ws_1' });
  expect(JSON.stringify(body.input)).toContain('Found it.');
});
