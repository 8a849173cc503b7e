import type { AssistantContent, Message, ToolContent, ToolMessage } from 'allium';
import { userMessage } from 'allium';
import { describe, expect, it } from 'vitest';
import { digestOf } from './digest.js';
import { type PromptOptions, toPrompt } from './prompt.js';
import { keysOf } from './provider-options.js';

const options = (provider: string, more: Partial<PromptOptions> = {}): PromptOptions => ({
  version: 'v3',
  provider,
  keys: keysOf(provider),
  ...more,
});
const anthropic = options('anthropic');

const assistant = (content: readonly AssistantContent[], model?: string, metadata?: object): Message => ({
  id: '',
  role: 'assistant',
  content,
  stopReason: 'stop',
  ...(model && { model }),
  ...(metadata && { metadata: metadata as Record<string, unknown> }),
});

const result = (content: readonly ToolContent[], more: Partial<ToolMessage> = {}): ToolMessage => ({
  id: '',
  role: 'tool',
  toolCallId: 'a',
  toolName: 'look',
  content,
  isError: false,
  ...more,
});

const content = (message: Message, given = anthropic) => toPrompt('', [message], given)[0]?.content;

describe('toPrompt', () => {
  it('begins with the system prompt and its options, and leaves out an empty one', () => {
    const systemOptions = { anthropic: { cacheControl: { type: 'ephemeral' } }, openai: { x: 1 } };
    expect(toPrompt('Be kind.', [], { ...anthropic, systemOptions })).toEqual([
      {
        role: 'system',
        content: 'Be kind.',
        providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
      },
    ]);
    expect(toPrompt('', [userMessage(''), assistant([{ type: 'text', text: '' }])], anthropic)).toEqual([]);
    expect(toPrompt(' \n', [], anthropic)).toEqual([]);
    const systemBlocks = [{ text: 'Be kind.' }, { text: ' ' }];
    expect(toPrompt('Be kind.\n\n ', [], { ...anthropic, systemBlocks })).toEqual([
      { role: 'system', content: 'Be kind.' },
    ]);
  });

  it('puts the results of one turn into one message, in order', () => {
    const text = (value: string) => [{ type: 'text' as const, text: value }];
    const made = toPrompt(
      '',
      [
        result(text('1')),
        result(text('2'), {
          toolCallId: 'b',
          isError: true,
          metadata: { provider: { anthropic: { c: 1 } } },
        }),
        userMessage('Go on.'),
        result(text('3')),
      ],
      anthropic,
    );
    expect(made).toEqual([
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'look', output: { type: 'text', value: '1' } },
          {
            type: 'tool-result',
            toolCallId: 'b',
            toolName: 'look',
            output: { type: 'error-text', value: '2' },
            providerOptions: { anthropic: { c: 1 } },
          },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'Go on.' }] },
      { role: 'tool', content: [expect.objectContaining({ output: { type: 'text', value: '3' } })] },
    ]);
  });

  it('says so if a result has no word in it, since some providers refuse blank text', () => {
    const text = (value: string) => ({ type: 'text' as const, text: value });
    const image = { type: 'image' as const, data: 'AAEC', mimeType: 'image/png' };
    const output = (given: readonly ToolContent[]) =>
      (content(result(given)) as { output?: unknown }[])[0]!.output;
    for (const blank of [[], [text('')], [text(' \n'), text('')]])
      expect(output(blank)).toEqual({ type: 'text', value: '(no output)' });
    expect(output([text(''), text('one')])).toEqual({ type: 'text', value: 'one' });
    expect(output([text(''), image])).toMatchObject({ type: 'content', value: [{ mediaType: 'image/png' }] });
  });

  it('leaves out texts without a word, which Anthropic refuses, unless a user said nothing else', () => {
    const text = (value: string, metadata?: object) => ({
      type: 'text' as const,
      text: value,
      ...(metadata && { metadata: metadata as Record<string, unknown> }),
    });
    const call = { type: 'tool-call' as const, id: 'a', name: 'look', arguments: '{}' };
    const image = { type: 'image' as const, data: 'AAEC', mimeType: 'image/png' };
    expect(
      toPrompt('', [assistant([text(' \n')]), assistant([text('\n\n'), call]), result([])], anthropic),
    ).toEqual([
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'look', input: {} }] },
      { role: 'tool', content: [expect.anything()] },
    ]);
    expect(content(assistant([text('a'), text(' '), text(' b ')]))).toEqual([text('a'), text(' b ')]);
    expect(content(userMessage([text('\n'), image]))).toMatchObject([{ type: 'file' }]);
    expect(content(userMessage([text('a'), text(' ')]))).toEqual([text('a')]);
    expect(content(userMessage([text(' ')]))).toEqual([text(' ')]);
    // What a provider said about a text is worth keeping, such as Google's signatures and OpenAI's ids.
    const signed = { provider: { google: { thoughtSignature: 's' } } };
    expect(
      content(assistant([text(' ', { ...signed, digest: digestOf(' ') })], 'google/g'), options('google')),
    ).toEqual([{ ...text(' '), providerOptions: signed.provider }]);
  });

  it('replaces halves of characters everywhere, which Anthropic refuses, and leaves whole ones', () => {
    const [half, other] = ['a \ud83d', '\ude00 b'];
    const whole = 'a 😀 b';
    const call = (text: string) => ({
      type: 'tool-call' as const,
      id: 'a',
      name: 'look',
      arguments: `{"x":["${text}"],"y":"${whole}"}`,
    });
    const text = (value: string) => ({ type: 'text' as const, text: value });
    const image = { type: 'image' as const, data: 'AAEC', mimeType: 'image/png' };
    const made = toPrompt(
      half + whole,
      [
        userMessage(half + whole),
        assistant([
          { type: 'thinking', text: other },
          text(other),
          call(half),
          call('\\ud83d'),
          call('\\ud83d\\ude00'),
        ]),
        result([text(half)]),
        result([text(other), image]),
      ],
      anthropic,
    );
    const sent = JSON.stringify(made);
    expect(sent).not.toMatch(/\\ud[89a-f]/);
    expect(made[0]!.content).toBe(`a \ufffd${whole}`);
    const inputs = (made[2]!.content as { input?: unknown }[]).flatMap(({ input }) => (input ? [input] : []));
    expect(inputs).toEqual([
      { x: ['a \ufffd'], y: whole },
      { x: ['\ufffd'], y: whole },
      { x: ['😀'], y: whole },
    ]);
  });

  it('passes images and files in the form each specification wants', () => {
    const given = userMessage([
      { type: 'image', data: 'AAEC', mimeType: 'image/png' },
      { type: 'image', data: 'https://example.com/a.png', mimeType: 'image/png' },
      { type: 'file', data: 'data:application/pdf;base64,AAEC', mimeType: 'application/pdf', name: 'a.pdf' },
    ]);
    const url = new URL('https://example.com/a.png');
    for (const version of ['v2', 'v3'] as const) {
      expect(content(given, options('x', { version }))).toEqual([
        { type: 'file', data: 'AAEC', mediaType: 'image/png' },
        { type: 'file', data: url, mediaType: 'image/png' },
        { type: 'file', data: 'AAEC', mediaType: 'application/pdf', filename: 'a.pdf' },
      ]);
    }
    expect(content(given, options('x', { version: 'v4' }))).toMatchObject([
      { data: { type: 'data', data: 'AAEC' } },
      { data: { type: 'url', url } },
      { data: { type: 'data', data: 'AAEC' }, filename: 'a.pdf' },
    ]);
  });

  it.each(['v2', 'v3', 'v4'] as const)(
    'marks a failed result that has an image as an error: %s',
    (version) => {
      const image = { type: 'image' as const, data: 'AAEC', mimeType: 'image/png' };
      const text = (value: string) => ({ type: 'text' as const, text: value });
      const values = (given: readonly ToolContent[], isError: boolean) => {
        const made = content(result(given, { isError }), options('x', { version }));
        const [part] = made as { output?: { value?: unknown } }[];
        return part?.output?.value;
      };
      const shown = expect.objectContaining({ mediaType: 'image/png' });
      expect(values([image], true)).toEqual([text('The call failed:'), shown]);
      expect(values([text('No page.'), image, text('Sorry.')], true)).toEqual([
        text('The call failed:\nNo page.'),
        shown,
        text('Sorry.'),
      ]);
      expect(values([text('Here.'), image], false)).toEqual([text('Here.'), shown]);
    },
  );

  it('passes results with images and files in the form each specification wants', () => {
    const given = result([
      { type: 'text', text: 'Look:' },
      { type: 'image', data: 'AAEC', mimeType: 'image/png' },
      { type: 'image', data: 'https://example.com/a.png', mimeType: 'image/png' },
      { type: 'file', data: 'AAEC', mimeType: 'application/pdf', name: 'a.pdf' },
    ]);
    const values = (version: PromptOptions['version']) => {
      const [part] = content(given, options('x', { version })) as { output?: unknown }[];
      return part?.output;
    };
    expect(values('v2')).toEqual({
      type: 'content',
      value: [
        { type: 'text', text: 'Look:' },
        { type: 'media', data: 'AAEC', mediaType: 'image/png' },
        { type: 'text', text: 'https://example.com/a.png' },
        { type: 'media', data: 'AAEC', mediaType: 'application/pdf' },
      ],
    });
    expect(values('v3')).toMatchObject({
      value: [
        {},
        { type: 'image-data', data: 'AAEC', mediaType: 'image/png' },
        { type: 'image-url', url: 'https://example.com/a.png' },
        { type: 'file-data', data: 'AAEC', mediaType: 'application/pdf', filename: 'a.pdf' },
      ],
    });
    expect(values('v4')).toMatchObject({
      value: [
        {},
        { type: 'file', data: { type: 'data' } },
        { type: 'file', data: { type: 'url' } },
        { type: 'file' },
      ],
    });
  });

  it('passes arguments as an object, whatever the model wrote', () => {
    const input = (text: string) => {
      const call = { type: 'tool-call' as const, id: 'a', name: 'look', arguments: text };
      return (content(assistant([call])) as { input?: unknown }[])[0]?.input;
    };
    expect(['{"a":1}', '', '{"a', '[1]', 'null'].map(input)).toEqual([
      { a: 1 },
      {},
      { arguments: '{"a' },
      { arguments: [1] },
      { arguments: null },
    ]);
  });

  it('gives calls and results ids that every provider accepts, and keeps different ids different', () => {
    const ids = ['call_1', 'r_x.2.call0', 'r_x.2_call0', `${'x'.repeat(70)}1`, `${'x'.repeat(70)}2`];
    const calls = ids.map((id) => ({ type: 'tool-call' as const, id, name: 'look', arguments: '{}' }));
    const results = ids.map((toolCallId) => result([], { toolCallId }));
    const [asked, answered] = toPrompt('', [assistant(calls), ...results], anthropic).map(
      ({ content: parts }) => (parts as { toolCallId?: string }[]).map(({ toolCallId }) => toolCallId!),
    );
    expect(asked).toEqual(answered);
    expect(new Set(asked).size).toBe(ids.length);
    expect(asked![0]).toBe('call_1');
    for (const id of asked!) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  it('sends ids of Kimi back to the model they are from, and to no other', () => {
    const id = 'functions.look:0';
    const call = { type: 'tool-call' as const, id, name: 'look', arguments: '{}' };
    const messages = [{ ...assistant([call]), model: 'router/kimi' }, result([], { toolCallId: id })];
    const idsFor = (model: string) =>
      toPrompt('', messages, { ...anthropic, provider: 'router', model }).map(
        ({ content: parts }) => (parts as { toolCallId?: string }[])[0]!.toolCallId,
      );
    expect(idsFor('router/kimi')).toEqual([id, id]);
    const [asked, answered] = idsFor('router/claude');
    expect(asked).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(answered).toBe(asked);
  });

  it.each([
    ['mistral', 'mistral/mistral-medium-latest'],
    ['openrouter', 'openrouter/mistralai/devstral-small'],
  ])('gives models of Mistral what they insist on: %s, %s', (provider, model) => {
    const call = (id: string) => ({ type: 'tool-call' as const, id, name: 'look', arguments: '{}' });
    const messages = [
      assistant([call('r_1.2.call0'), call('Ab3dE6gH9')], model),
      result([], { toolCallId: 'r_1.2.call0' }),
      result([], { toolCallId: 'Ab3dE6gH9' }),
      userMessage('Stop that.'),
    ];
    const idsOf = ({ content: parts }: { content: unknown }) =>
      (parts as { toolCallId?: string }[]).map(({ toolCallId }) => toolCallId!);
    const prompt = toPrompt('', messages, options(provider, { model }));
    expect(prompt.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant', 'user']);
    expect(prompt[2]!.content).toEqual([{ type: 'text', text: 'I have read the results.' }]);
    expect(idsOf(prompt[0]!)).toEqual([expect.stringMatching(/^[a-z0-9]{9}$/), 'Ab3dE6gH9']);
    expect(idsOf(prompt[1]!)).toEqual(idsOf(prompt[0]!));
    const other = options('azure', { model: 'azure/gpt-australia' });
    expect(toPrompt('', messages, other).map(({ role }) => role)).toEqual(['assistant', 'tool', 'user']);
  });

  it('sends provider-run tools back to their provider, and custom content if the specification has it', () => {
    const parts: AssistantContent[] = [
      {
        type: 'provider',
        kind: 'tool-call',
        value: { toolCallId: 's', toolName: 'search', input: '{"q":1}' },
      },
      { type: 'provider', kind: 'tool-result', value: { toolCallId: 's', toolName: 'search', result: [1] } },
      {
        type: 'provider',
        kind: 'tool-result',
        value: { toolCallId: 's', toolName: 'search', result: 'no', isError: true },
      },
      { type: 'provider', kind: 'source', value: { url: 'https://example.com' } },
      { type: 'provider', kind: 'custom', value: { kind: 'x.y' }, metadata: { provider: { x: { id: 1 } } } },
      { type: 'provider', kind: 'reasoning-file', value: { data: 'AAEC', mediaType: 'image/png' } },
      { type: 'file', data: 'AAEC', mimeType: 'image/png' },
    ];
    const ids = { toolCallId: 's', toolName: 'search' };
    const ran = [
      { type: 'tool-call', ...ids, input: { q: 1 }, providerExecuted: true },
      { type: 'tool-result', ...ids, output: { type: 'json', value: [1] } },
      { type: 'tool-result', ...ids, output: { type: 'error-json', value: 'no' } },
    ];
    expect(content(assistant(parts, 'x/1'), options('x'))).toEqual([
      ...ran,
      { type: 'file', data: 'AAEC', mediaType: 'image/png' },
    ]);
    expect(content(assistant(parts, 'x/1'), options('x', { version: 'v4' }))).toEqual([
      ...ran,
      { type: 'custom', kind: 'x.y', providerOptions: { x: { id: 1 } } },
      { type: 'reasoning-file', data: { type: 'data', data: 'AAEC' }, mediaType: 'image/png' },
      { type: 'file', data: { type: 'data', data: 'AAEC' }, mediaType: 'image/png' },
    ]);
    expect(content(assistant(parts, 'y/1'), options('x'))).toBeUndefined();
  });
});

describe('metadata of one provider', () => {
  const provider = (name: string) => ({ [name]: { itemId: 'i1' } });
  const answer = (name: string, model: string) =>
    assistant(
      [
        {
          type: 'thinking',
          text: 'Hm.',
          signature: 's',
          metadata: { provider: provider(name), seal: [name, 'signature'] },
        },
        { type: 'text', text: 'Yes.', metadata: { provider: provider(name), digest: digestOf('Yes.') } },
        { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', metadata: { provider: provider(name) } },
      ],
      model,
    );

  it('goes back to it', () => {
    expect(content(answer('openai', 'openai/gpt-5'), options('openai'))).toEqual([
      { type: 'reasoning', text: 'Hm.', providerOptions: { openai: { itemId: 'i1', signature: 's' } } },
      { type: 'text', text: 'Yes.', providerOptions: { openai: { itemId: 'i1' } } },
      expect.objectContaining({ type: 'tool-call', providerOptions: { openai: { itemId: 'i1' } } }),
    ]);
  });

  it.each([
    ['openai', 'anthropic'],
    ['anthropic', 'openai'],
    ['openai', 'azure'],
    ['azure', 'openai'],
    ['google', 'openai-compatible'],
    ['one', 'two'],
  ])('does not go from %s to %s, and neither does its thinking', (from, to) => {
    for (const key of [from, to]) {
      const made = content(answer(from, `${from}/m`), options(to)) as { type: string }[];
      expect(made.map(({ type }) => type)).toEqual(['text', 'tool-call']);
      if (key === from) expect(JSON.stringify(made)).not.toContain('i1');
    }
  });

  it('does not hide a marker that was set for the model that is asked now', () => {
    const marked = { provider: { openai: { itemId: 'i1' }, anthropic: { cacheControl: 1 } } };
    const given = assistant([{ type: 'text', text: 'Yes.', metadata: marked }], 'openai/gpt-5');
    expect(content(given)).toEqual([
      { type: 'text', text: 'Yes.', providerOptions: { anthropic: { cacheControl: 1 } } },
    ]);
  });

  it('goes back with a call that got a new id, but not with another call', () => {
    const late = (calls: unknown[]) => ({ aiSdk: { calls } });
    const seal = { id: 'old', provider: { google: { thoughtSignature: 's' } }, digest: digestOf('{}') };
    const call = (id: string) => ({ type: 'tool-call' as const, id, name: 'look', arguments: '{}' });
    const sealed = (given: Message) =>
      (content(given, options('google')) as { providerOptions?: unknown }[]).map(
        (part) => part.providerOptions,
      );
    const own = { google: { thoughtSignature: 's' } };
    expect(sealed(assistant([call('x'), call('y')], 'google/g', late([null, seal])))).toEqual([
      undefined,
      own,
    ]);
    expect(sealed(assistant([call('old'), call('y')], 'google/g', late([seal, null])))).toEqual([
      own,
      undefined,
    ]);
    expect(sealed(assistant([call('y')], 'google/g', late([seal, null])))).toEqual([undefined]);
  });

  it('is left out once the part has changed: text, arguments or thinking', () => {
    const digest = digestOf('before');
    const metadata = { provider: { x: { itemId: 'i1' } }, digest };
    const given = assistant(
      [
        {
          type: 'thinking',
          text: 'after',
          signature: 's',
          metadata: { ...metadata, seal: ['x', 'signature'] },
        },
        { type: 'text', text: 'after', metadata },
        { type: 'tool-call', id: 'a', name: 'look', arguments: '{"after":1}', metadata },
      ],
      'x/1',
    );
    expect(content(given, options('x'))).toEqual([
      { type: 'text', text: 'after' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: { after: 1 } },
    ]);
  });

  it('does not refer to thinking that is gone', () => {
    const own = { provider: { openai: { itemId: 'msg_1', phase: 'last' } } };
    const text: AssistantContent = { type: 'text', text: 'Yes.', metadata: own };
    const torn = assistant([text], 'openai/gpt-5', { aiSdk: { thinking: 1 } });
    expect(content(torn, options('openai'))).toEqual([
      { type: 'text', text: 'Yes.', providerOptions: { openai: { phase: 'last' } } },
    ]);
  });

  // OpenAI: "Item 'rs_1' of type 'reasoning' was provided without its required following item."
  it('of thinking goes only together with the text or call that it led to', () => {
    const item = (itemId: string, text?: string) => ({
      provider: { openai: { itemId } },
      ...(text !== undefined && { digest: digestOf(text) }),
    });
    const thought: AssistantContent = { type: 'thinking', text: 'Hm.', metadata: item('rs_1', 'Hm.') };
    const said = (text: string): AssistantContent => ({
      type: 'text',
      text,
      metadata: item('msg_1', 'Yes.'),
    });
    const called: AssistantContent = { type: 'tool-call', id: 'c', name: 'look', arguments: '{}' };
    const idsOf = (parts: AssistantContent[], more: object = {}) => {
      const given = assistant(parts, 'openai/gpt-5', { aiSdk: { thinking: 1, ...more } });
      const made = content(given, options('openai')) as {
        providerOptions?: { openai: { itemId?: string } };
      }[];
      return made?.map(({ providerOptions }) => providerOptions?.openai.itemId);
    };
    expect(idsOf([thought, said('Yes.')])).toEqual(['rs_1', 'msg_1']);
    // A guard has changed it; structured output has turned a call into it; nothing is left of it.
    expect(idsOf([thought, said('[removed]')])).toEqual([undefined]);
    expect(idsOf([thought, { type: 'text', text: '{}' }])).toEqual([undefined]);
    expect(idsOf([thought])).toBeUndefined();
    const late = (digest: string) => ({
      calls: [{ id: 'c', provider: { openai: { itemId: 'fc_1' } }, digest: digestOf(digest) }],
    });
    expect(idsOf([thought, called], late('{}'))).toEqual(['rs_1', 'fc_1']);
    expect(idsOf([thought, called], late('{"a":1}'))).toEqual([undefined]);
    expect(idsOf([thought, called, said('Yes.')])).toEqual([undefined, undefined]);
  });

  it("is required for thinking that had a signature; other thinking goes under the provider's name", () => {
    const lost: AssistantContent = { type: 'thinking', text: 'Hm.', metadata: { seal: ['x', 'signature'] } };
    expect(content(assistant([lost], 'x/1'), options('x'))).toBeUndefined();
    const plain: AssistantContent[] = [
      { type: 'thinking', text: 'Hm.', signature: 's' },
      { type: 'thinking', text: '', signature: 'd', redacted: true },
      { type: 'thinking', text: 'Open.' },
      { type: 'thinking', text: '' },
    ];
    expect(content(assistant(plain))).toEqual([
      { type: 'reasoning', text: 'Hm.', providerOptions: { anthropic: { signature: 's' } } },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'd' } } },
      { type: 'reasoning', text: 'Open.' },
    ]);
  });
});

describe('keysOf', () => {
  it("finds the names that a provider's metadata may have", () => {
    const keys = (provider: string) => [...keysOf(provider)].filter((key) => key !== 'openaiCompatible');
    expect(keys('openai.responses')).toEqual(['openai', 'responses']);
    expect(keys('azure.chat')).toContain('openai');
    expect(keys('vertex.anthropic.messages')).toEqual(expect.arrayContaining(['vertex', 'anthropic']));
    expect(keys('my-server.chat')).toEqual(['my-server', 'myServer', 'chat']);
    expect(keys('amazon-bedrock')).toEqual(['amazon-bedrock', 'amazonBedrock', 'bedrock']);
  });

  it('converts a frozen message once per model, and returns a new list each time', () => {
    const made = new WeakMap();
    const call = { type: 'tool-call', id: 'a', name: 'look', arguments: '{"x":1}' } as const;
    const messages = [userMessage('Hi'), assistant([call]), result([{ type: 'text', text: 'seen' }])];
    for (const message of messages) Object.freeze(message);
    const first = toPrompt('', messages, { ...anthropic, made });
    const expected = structuredClone(first);
    (first[0]!.content as unknown[]).push({ type: 'text', text: 'added by somebody' });
    first.pop();
    const second = toPrompt('', messages, { ...anthropic, made });
    expect(second).toEqual(expected);
    expect(second).toEqual(toPrompt('', messages, anthropic));
    expect(second[1]!.content[0]).toBe(first[1]!.content[0]);
    // Another model has other names for options, so what was made for this one is not its own.
    expect(toPrompt('', messages, { ...options('openai'), made: new WeakMap() })[1]!.content[0]).not.toBe(
      second[1]!.content[0],
    );
  });

  it('converts a message again if it may have changed', () => {
    const made = new WeakMap();
    const message = { ...userMessage('before') };
    expect(toPrompt('', [message], { ...anthropic, made })[0]!.content).toEqual([
      { type: 'text', text: 'before' },
    ]);
    message.content = [{ type: 'text', text: 'after' }];
    expect(toPrompt('', [message], { ...anthropic, made })[0]!.content).toEqual([
      { type: 'text', text: 'after' },
    ]);
  });
});
