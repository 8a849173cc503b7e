import { Agent, tool } from 'allium';
import { promptCaching } from 'allium/middleware/prompt-caching';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AnyPart, call, fake, finish, text, VERSIONS } from '../test/fakes.js';
import { type RawServer, rawServer, streams } from '../test/raw-server.js';
import { anthropic, textFrames } from '../test/wires.js';
import { type FromAiSdkOptions, fromAiSdk } from './index.js';

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

describe.each(VERSIONS)('promptCaching with a model of %s', (version) => {
  const prompts = async (provider: string, systemOptions?: FromAiSdkOptions['systemOptions']) => {
    const faked = fake(
      version,
      [
        [...call('a', 'look', '{}'), ...call('b', 'look', '{}'), finish(version, 'tool-calls')],
        [...text('Fine.'), finish(version)],
      ],
      { provider },
    );
    const model = fromAiSdk(faked.model, systemOptions ? { systemOptions } : {});
    const middleware = [promptCaching()];
    await new Agent({ model, tools: [look], systemPrompt: 'Be kind.', middleware }).run('Look.');
    return faked.calls.map(({ options }) => options.prompt as AnyPart[]);
  };
  const mark = { anthropic: { cacheControl: { type: 'ephemeral' } } };

  it('sends the marks with the system prompt, the last message and the one before the answer', async () => {
    const [first, second] = await prompts('anthropic.messages');
    expect(first!.map(({ role, providerOptions }) => [role, providerOptions])).toEqual([
      ['system', mark],
      ['user', mark],
    ]);
    expect(second!.slice(0, 2)).toEqual(first);
    expect(second![2]).not.toHaveProperty('providerOptions');
    expect(second![3].content.map(({ providerOptions }: AnyPart) => providerOptions)).toEqual([
      undefined,
      mark,
    ]);
  });

  it('sends each provider only its own marks, and none to providers without marks', async () => {
    const [bedrock] = await prompts('amazon-bedrock');
    expect(bedrock![0].providerOptions).toEqual({ bedrock: { cachePoint: { type: 'default' } } });
    expect(JSON.stringify(await prompts('openai.responses'))).not.toContain('providerOptions');
  });

  it('adds its marks to the options the system prompt already has', async () => {
    const [first] = await prompts('anthropic.messages', { anthropic: { more: 1 }, openai: { no: 1 } });
    expect(first![0].providerOptions).toEqual({ anthropic: { ...mark.anthropic, more: 1 } });
  });
});

describe('promptCaching with Anthropic', () => {
  let server: RawServer;
  beforeAll(async () => {
    server = await rawServer();
  });
  afterAll(() => server.stop());

  it('has the marks on the wire', async () => {
    server.reply(
      streams(anthropic.calls([{ id: 'toolu_1', name: 'look', input: '{}' }])),
      streams(textFrames(anthropic, 'Fine.')),
    );
    const model = anthropic.model(server.url);
    await new Agent({ model, tools: [look], systemPrompt: 'Look well.', middleware: [promptCaching()] }).run(
      'Look.',
    );
    const { body } = server.received.at(-1)!;
    const marked = { cache_control: { type: 'ephemeral' } };
    expect(body.system).toMatchObject([{ text: 'Look well.', ...marked }]);
    expect(body.messages.map(({ content }: AnyPart) => content.at(-1).cache_control)).toEqual([
      marked.cache_control,
      undefined,
      marked.cache_control,
    ]);
  });
});
