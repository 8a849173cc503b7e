import { describe, expect, it } from 'vitest';
import { Agent } from '../index.js';
import { userMessage } from '../kernel/messages/messages.js';
import type { ModelPart, ModelRequest } from '../kernel/messages/model.js';
import {
  chunks,
  failWith,
  hang,
  type Script,
  type ScriptedModel,
  type ScriptedModelOptions,
  scriptedModel,
  text,
  toolCalls,
} from './scripted-model.js';

const request: ModelRequest = {
  messages: [userMessage('Hello.')],
  systemPrompt: '',
  tools: [],
  settings: {},
};
const { signal: never } = new AbortController();

async function parts(model: ScriptedModel, signal = never): Promise<ModelPart[]> {
  const read: ModelPart[] = [];
  for await (const part of model.stream(request, { signal })) read.push(part);
  return read;
}

const said = (word: string): ModelPart => ({ type: 'text', text: word });
const usage = { inputTokens: 10, outputTokens: 5 };

describe('a step of a script', () => {
  it('may be written as text, content, a step or a function of the request and the number of the call', async () => {
    const model = scriptedModel([
      'One.',
      [{ type: 'text', text: 'Two.' }],
      text('Three.'),
      ({ messages }, call) => `${call} after ${messages.length}`,
      () => [{ type: 'tool-call', id: 'a', name: 'add', arguments: '{}' }],
    ]);
    expect(await parts(model)).toEqual([said('One.'), { type: 'finish', reason: 'stop', usage }]);
    expect(await parts(model)).toEqual([said('Two.'), { type: 'finish', reason: 'stop', usage }]);
    expect(await parts(model)).toEqual([said('Three.'), { type: 'finish', reason: 'stop', usage }]);
    expect((await parts(model))[0]).toEqual(said('4 after 1'));
    expect((await parts(model))[1]).toEqual({ type: 'finish', reason: 'tool-calls', usage });
  });

  it('made by toolCalls() numbers its calls, takes arguments as values or as raw text, and can have text before a call', async () => {
    const step = toolCalls(
      { name: 'a', args: { x: 1 } },
      { name: 'b', args: '{"broken', text: 'Hm.' },
      { name: 'c', id: 'mine' },
    );
    expect(await parts(scriptedModel([step]))).toEqual([
      { type: 'tool-call', id: 'call_1', name: 'a', arguments: '{"x":1}' },
      said('Hm.'),
      { type: 'tool-call', id: 'call_2', name: 'b', arguments: '{"broken' },
      { type: 'tool-call', id: 'mine', name: 'c', arguments: '{}' },
      { type: 'finish', reason: 'tool-calls', usage },
    ]);
  });

  it('made by chunks() gets the right finish part if it has none', async () => {
    const call = { type: 'tool-call', id: 'a', name: 'add', arguments: '{}' } as const;
    const cut = { type: 'finish', reason: 'length' } as const;
    const model = scriptedModel([
      chunks('Good ', 'tick', 'morning.'),
      chunks('Hm.', call),
      chunks('Good ', cut),
    ]);
    expect(await parts(model)).toEqual([
      said('Good '),
      said('morning.'),
      { type: 'finish', reason: 'stop', usage },
    ]);
    expect((await parts(model)).at(-1)).toEqual({ type: 'finish', reason: 'tool-calls', usage });
    expect((await parts(model)).at(-1)).toEqual({ type: 'finish', reason: 'length', usage });
  });

  it('made by failWith() streams its pieces and then throws the given object itself', async () => {
    for (const error of [new Error('503'), { status: 503 }, 'text', undefined]) {
      const read: ModelPart[] = [];
      const reading = (async () => {
        for await (const part of scriptedModel([failWith(error, 'Good ')]).stream(request, {
          signal: never,
        })) {
          read.push(part);
        }
      })();
      await expect(
        reading.then(
          () => 'no error',
          (thrown) => ({ thrown }),
        ),
      ).resolves.toEqual({ thrown: error });
      expect(read).toEqual([said('Good ')]);
    }
  });

  it('has its own usage, or the usage of the model', async () => {
    const model = scriptedModel([text('a', { inputTokens: 1 }), 'b'], { usage: { outputTokens: 7 } });
    expect((await parts(model)).at(-1)).toMatchObject({ usage: { inputTokens: 1, outputTokens: 0 } });
    expect((await parts(model)).at(-1)).toMatchObject({ usage: { inputTokens: 0, outputTokens: 7 } });
  });

  it('may leave out some counts in a finish part', async () => {
    const end = { type: 'finish', reason: 'stop', usage: { inputTokens: 1 } } as const;
    expect((await parts(scriptedModel([chunks('a', end)]))).at(-1)).toEqual(end);
  });

  it('is refused if it is anything else', () => {
    expect(() => scriptedModel(['fine', 42 as never])).toThrow(
      'Expected `script[1]` to be text, a list of content',
    );
    expect(() => scriptedModel('text' as never)).toThrow(
      'Expected `script` to be a list of steps, got "text".',
    );
    expect(() => scriptedModel([], { repeats: true } as ScriptedModelOptions)).toThrow(
      'Did you mean `repeat`?',
    );
  });
});

describe('hang()', () => {
  it('streams its pieces and ends with the reason of the abort, whether that comes before the wait or during it', async () => {
    for (const early of [false, true]) {
      const model = scriptedModel([hang('Good ')]);
      const controller = new AbortController();
      const opened = model.stream(request, { signal: controller.signal }) as AsyncIterable<ModelPart>;
      const stream = opened[Symbol.asyncIterator]();
      expect((await stream.next()).value).toEqual(said('Good '));
      if (early) controller.abort('enough');
      const ending = stream.next();
      if (!early) controller.abort('enough');
      await expect(ending).rejects.toBe('enough');
      expect(model.aborted).toBe(1);
    }
  });

  it('lets an aborted run end', async () => {
    const model = scriptedModel([hang('Good ')]);
    const controller = new AbortController();
    const run = new Agent({ model }).run('Hello.', { signal: controller.signal });
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error('enough'));
    await expect(run).rejects.toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    expect(model.aborted).toBe(1);
  });
});

describe('scriptedModel', () => {
  it('stops between two parts or in a pause when it is aborted', async () => {
    for (const step of [chunks('Good ', 'morning.'), chunks('Good ', 'tick', 'morning.')]) {
      const controller = new AbortController();
      const read: ModelPart[] = [];
      const reading = (async () => {
        for await (const part of scriptedModel([step]).stream(request, { signal: controller.signal })) {
          read.push(part);
          controller.abort('enough');
        }
      })();
      await expect(reading).rejects.toBe('enough');
      expect(read).toEqual([said('Good ')]);
    }
  });

  it('fails when it is called after its last step, and says what to do', async () => {
    const model = scriptedModel(['Only.']);
    await parts(model);
    await expect(parts(model)).rejects.toMatchObject({
      code: 'SCRIPT_EXHAUSTED',
      message:
        'The scripted model was called 2 times, but its script has 1 step. Last message: [{"type":"text","text":"Hello."}]. Add a step, pass repeat: true, or find out why it was called again.',
    });
    await expect(parts(scriptedModel([], { repeat: true }))).rejects.toMatchObject({
      code: 'SCRIPT_EXHAUSTED',
    });
  });

  it('counts the remaining steps, and starts again with `repeat`', async () => {
    const model = scriptedModel(['a', 'b']);
    expect(model.remaining).toBe(2);
    await parts(model);
    expect(model.remaining).toBe(1);
    const again = scriptedModel(['a', 'b'], { repeat: true });
    for (const word of ['a', 'b', 'a']) expect((await parts(again))[0]).toEqual(said(word));
    expect(again.remaining).toBe(Number.POSITIVE_INFINITY);
  });

  it('serves several calls at once, each with its own step', async () => {
    const model = scriptedModel([chunks('a', 'tick', 'a'), chunks('b', 'tick', 'b')]);
    const [one, two] = await Promise.all([parts(model), parts(model)]);
    expect([one[0], one[1], two[0], two[1]]).toEqual([said('a'), said('a'), said('b'), said('b')]);
  });

  it('records each request as it was at the call, even if the context changes later', async () => {
    const model = scriptedModel(['First.', 'Second.']);
    const list = [userMessage('kept')];
    const agent = new Agent({
      model,
      middleware: [
        {
          name: 'changing',
          convertToLlm: () => list,
          afterModel(ctx) {
            ctx.messages = [];
            ctx.systemPrompt = 'changed';
            list.push(userMessage('later'));
          },
        },
      ],
    });
    await agent.run('Hello.');
    expect(model.requests[0]?.messages).toEqual([userMessage('kept')]);
    expect(model.requests[0]?.systemPrompt).toBe('');
  });

  it('says what a function of the script returned if that is not an answer', async () => {
    const failure = (step: unknown) =>
      parts(scriptedModel([step as Script])).catch((error: unknown) => error);
    expect(await failure(() => undefined)).toMatchObject({
      code: 'INVALID_OPTION',
      message:
        'Expected what the function for call 1 of the script returns to be text, a list of content, or a step made by text(), toolCalls(), chunks(), failWith() or hang(), got undefined.',
    });
    expect(await failure(async () => Promise.reject(new Error('late')))).toMatchObject({
      code: 'INVALID_OPTION',
      message:
        'Expected what the function for call 1 of the script returns to be an answer, got a promise. A script answers at once: make the function a plain one.',
    });
    expect(await failure(() => ({ parts: [null] }))).toMatchObject({
      code: 'INVALID_OPTION',
      message:
        'Expected part 1 of what the function for call 1 of the script returns to be an object with a type, got null.',
    });
  });

  it('says which part or argument of a script is wrong', () => {
    expect(() => scriptedModel(['Hi.', { parts: ['tick', undefined as never] }])).toThrow(
      'Expected part 2 of script[1] to be an object with a type, got undefined.',
    );
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    for (const args of [circular, 1n, () => {}])
      expect(() => toolCalls({ name: 'add', args })).toThrow(
        'Expected `args of add` to be JSON, or text that is sent as it is, got ',
      );
    expect(() => toolCalls({ name: 'add', arguments: {} } as never)).toThrow('Unknown option `arguments`');
  });

  it('refuses unknown fields of a step, of usage and of its options', () => {
    expect(() => scriptedModel([{ parts: [], hang: true } as never])).toThrow(
      'Unknown option `hang` of script[0]. Did you mean `hangs`?',
    );
    expect(() => scriptedModel(new Array(1))).toThrow('Expected `script[0]` to be text');
    expect(() => text('Hi.', { inputToken: 5 } as never)).toThrow(
      'Unknown option `inputToken` of usage. Did you mean `inputTokens`?',
    );
    expect(() => scriptedModel([], { usage: 5 as never })).toThrow('for usage, got 5.');
    expect(() => scriptedModel([], { repeat: 'yes' as never })).toThrow(
      'Expected `repeat` to be true or false, got "yes".',
    );
  });

  it('has the name and price it is given', () => {
    const price = { input: 1, output: 2 };
    expect(scriptedModel([], { provider: 'acme', id: 'one', price })).toMatchObject({
      provider: 'acme',
      id: 'one',
      price,
    });
  });
});
