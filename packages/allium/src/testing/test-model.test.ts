import { describe, expect, it } from 'vitest';
import type { Model } from '../kernel/messages/model.js';
import { absorbedModel, deafModel, frozenModel } from './broken/models/abort.js';
import { confusingModel } from './broken/models/call-ids.js';
import { singleMindedModel } from './broken/models/concurrent-calls.js';
import { broken, soundParts } from './broken/models/delegate.js';
import { apologeticModel } from './broken/models/errors-reject.js';
import { afterthoughtModel, endlessModel } from './broken/models/finish.js';
import { presumptuousModel, tidyingModel } from './broken/models/request-unchanged.js';
import { namelessModel, promisingModel } from './broken/models/stream-shape.js';
import { speechlessModel } from './broken/models/text.js';
import { secretiveModel } from './broken/models/thinking.js';
import { doublyEncodingModel, sloppyModel } from './broken/models/tool-arguments.js';
import { hesitantModel, inventiveModel } from './broken/models/tool-call.js';
import {
  freeModel,
  innumerateModel,
  outputSummingModel,
  shortModel,
  summingModel,
} from './broken/models/usage.js';
import { rawModel } from './broken/models/valid-parts.js';
import { MODEL_LAWS, type ModelLaw } from './model-laws/index.js';
import { chunks, failWith, scriptedModel, text, toolCalls } from './scripted-model.js';
import { type CheckModelOptions, checkModel, testModel } from './test-model.js';

const thinking = { request: { settings: { provider: { test: { thinking: true } } } } };
const failing = { model: () => scriptedModel([failWith(new Error('503'))]) };

const AGAIN = 'Expected ? to be the same or less when a request is sent again';

/** Per law: models that break it and nothing else, and a part of what is said about each. */
const BROKEN: Record<ModelLaw, readonly (readonly [() => Model, string, CheckModelOptions?])[]> = {
  'stream-shape': [
    [promisingModel, 'Expected stream() to return the stream itself, got a promise.'],
    [namelessModel, 'Expected `id` to be non-empty text, got "".'],
  ],
  'valid-parts': [
    [rawModel, 'test/broken yielded {"type":"content_block_start","index":0}: its `type` must be text, '],
  ],
  finish: [
    [endlessModel, 'Expected the stream to end with a `finish` part, got {"type":"text","text":"morning."}.'],
    [afterthoughtModel, 'Expected one `finish` part, the last of 4, got it as part 3.'],
  ],
  usage: [
    [innumerateModel, 'and only numbers ≥ 0, got {"inputTokens":null,"outputTokens":-1}.'],
    [shortModel, 'Expected totalTokens to be at least inputTokens + outputTokens'],
    [freeModel, 'Expected outputTokens of an answer with text to be more than 0'],
    [summingModel, `${AGAIN.replace('?', 'inputTokens')} (10 the first time), got 20.`],
    [
      summingModel,
      `${AGAIN.replace('?', 'inputTokens')} (10 the first time), got 20.`,
      { deterministic: false },
    ],
    [outputSummingModel, `${AGAIN.replace('?', 'outputTokens')} (5 the first time), got 10.`],
  ],
  abort: [
    [deafModel, 'Expected a stream that was aborted before its first part to stop'],
    [
      frozenModel,
      'A stream that was aborted before its first part did not end within 5 ms.',
      { abortWithinMs: 5 },
    ],
    [absorbedModel, 'Expected a stream that was aborted before its last piece to stop'],
  ],
  'errors-reject': [
    [
      () => broken(),
      'but it ended with {"type":"finish","reason":"error"',
      { failing: { model: apologeticModel } },
    ],
  ],
  'concurrent-calls': [[singleMindedModel, 'as when it is called alone']],
  'request-unchanged': [
    [
      presumptuousModel,
      'Expected the request after the call to be undefined, as before it, got 1024 (at settings.maxOutputTokens).',
    ],
    [
      tidyingModel,
      'Expected a frozen request to be answered like any other, got: Cannot assign to read only property',
    ],
  ],
  text: [[speechlessModel, 'Expected an answer with text']],
  'tool-call': [
    [hesitantModel, 'Expected an answer that calls a tool'],
    [inventiveModel, 'Expected calls only to get_weather, got one to "get_wether".'],
  ],
  'tool-arguments': [
    [sloppyModel, 'Expected the arguments of "get_weather" to be JSON text'],
    [doublyEncodingModel, 'Expected the arguments of "get_weather" to be a JSON object'],
  ],
  'call-ids': [[confusingModel, 'got ["get_weather","get_weather"].']],
  thinking: [[secretiveModel, 'Expected an answer with thinking']],
};

describe('the suite names the law that a broken model breaks', () => {
  for (const [law, cases] of Object.entries(BROKEN)) {
    for (const [open, says, options] of cases) {
      it(`${law} is broken by ${open.name || 'a failing model'}`, async () => {
        const failed = (await checkModel(open, { thinking, failing, ...options })).filter(({ ok }) => !ok);
        expect(
          failed.map((report) => report.law),
          JSON.stringify(failed, null, 2),
        ).toEqual([law]);
        expect(failed[0]?.error).toContain(says);
      });
    }
  }
});

function talking(): Model {
  const step = toolCalls(
    { name: 'get_weather', args: { city: 'Oslo' } },
    { name: 'get_weather', args: { city: 'Rome' } },
  );
  const pieces = chunks({ type: 'thinking', text: 'Hm.' }, 'Good ', 'tick', 'morning.');
  return scriptedModel([({ tools }) => (tools.length > 0 ? step : pieces)], { repeat: true });
}

describe('checkModel', () => {
  it('finds nothing wrong with a sound model, nor with the scripted one', async () => {
    for (const model of [broken(), talking, talking()]) {
      const reports = await checkModel(model, { thinking, failing });
      expect(reports).toEqual(MODEL_LAWS.map(({ law }) => ({ law, ok: true })));
    }
  });

  it('lets an aborted stream finish if only its `finish` part was left', async () => {
    const model = broken({
      async *stream(request, { signal }) {
        for (const part of soundParts(request)) {
          if (part.type !== 'finish') signal.throwIfAborted();
          yield part;
        }
      },
    });
    const reports = await checkModel(model, { thinking, failing });
    expect(reports.filter(({ ok }) => !ok)).toEqual([]);
  });

  it('reads synchronous streams too', async () => {
    const model = broken({
      *stream(_, { signal }) {
        for (const part of text('Good morning.').parts) {
          signal.throwIfAborted();
          if (part !== 'tick')
            yield part.type === 'finish' ? { ...part, usage: { inputTokens: 1, outputTokens: 1 } } : part;
        }
      },
    });
    const failed = (await checkModel(model)).filter(({ ok }) => !ok);
    expect(failed.map(({ law }) => law)).toEqual(['tool-call']);
  });

  it('says what the factory made if it is not a model', async () => {
    const reports = await checkModel(() => undefined as never);
    expect(new Set(reports.filter(({ skipped }) => !skipped).map(({ error }) => error))).toEqual(
      new Set(['Expected `model()` to be a model with provider, id and stream(), got undefined.']),
    );
  });

  it('reports the laws that it could not try as skipped', async () => {
    const skipped = (await checkModel(broken())).filter((report) => report.skipped);
    expect(skipped).toEqual([
      { law: 'errors-reject', ok: true, skipped: 'It needs `failing`.' },
      { law: 'thinking', ok: true, skipped: 'It needs `thinking`.' },
    ]);
  });

  it("lets the author's `expect` judge an answer", async () => {
    const expectLoud = (loud: string) => {
      if (loud !== loud.toUpperCase()) throw new Error('Louder, please.');
    };
    const failed = (
      await checkModel(broken(), { text: { expect: ({ content }) => expectLoud(JSON.stringify(content)) } })
    ).filter(({ ok }) => !ok);
    expect(failed).toEqual([{ law: 'text', ok: false, error: 'Louder, please.' }]);
  });

  it('sends the requests it is given', async () => {
    const model = scriptedModel(['Hi.'], { repeat: true });
    await checkModel(model, { text: { request: { messages: 'Hey', systemPrompt: 'Be kind.' } } });
    expect(model.requests[0]).toMatchObject({
      systemPrompt: 'Be kind.',
      messages: [{ role: 'user', content: [{ text: 'Hey' }] }],
    });
  });

  it('does not compare the answers of a model that is not deterministic', async () => {
    const model = scriptedModel([(_, call) => `Call ${call}.`], { repeat: true });
    const lawsBroken = async (deterministic: boolean) =>
      (await checkModel(model, { deterministic })).filter(({ ok }) => !ok).map(({ law }) => law);
    expect(await lawsBroken(true)).toEqual(['concurrent-calls', 'tool-call']);
    expect(await lawsBroken(false)).toEqual(['tool-call']);
  });

  it('reports a model that hangs', async () => {
    const model = broken({
      stream: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) }),
    });
    const failed = (await checkModel(model, { timeoutMs: 2, abortWithinMs: 2 })).filter(({ ok }) => !ok);
    expect(failed.find(({ law }) => law === 'finish')?.error).toBe('The answer did not end within 2 ms.');
  });

  it('refuses anything but a model, and unknown options', async () => {
    await expect(checkModel({} as Model)).rejects.toThrow(
      'Expected `model` to be a model, or a function that makes one, got {}.',
    );
    await expect(checkModel(broken(), { timeout: 1 } as object)).rejects.toThrow(
      'Unknown option `timeout` of `checkModel`. Did you mean `timeoutMs`?',
    );
    await expect(checkModel(broken(), { timeoutMs: 0 })).rejects.toThrow(
      'Expected `timeoutMs` to be a number > 0, got 0.',
    );
    await expect(checkModel(broken(), { text: { requests: {} } as object })).rejects.toThrow(
      'Did you mean `request`?',
    );
  });
});

describe('testModel', () => {
  function declared(
    options: Partial<Parameters<typeof testModel>[1]> = {},
  ): Map<string, () => Promise<void>> {
    const tests = new Map<string, () => Promise<void>>();
    testModel(broken, { describe: (_, fn) => fn(), it: (name, fn) => tests.set(name, fn), ...options });
    return tests;
  }

  it('declares one test per law, except those that are skipped', () => {
    expect([...declared().keys()]).toEqual(MODEL_LAWS.map(({ law }) => law));
    expect(declared({ skip: { thinking: 'It does not think.' } }).has('thinking')).toBe(false);
  });

  it('fails a law that lacks something it needs and is not skipped', async () => {
    await expect(declared().get('thinking')!()).rejects.toThrow(
      'The law "thinking" cannot be tried. It needs `thinking`. Give it, or declare why',
    );
  });

  it('asks for `it` and `describe` if there are no global ones', () => {
    expect(() => testModel(broken, { describe })).toThrow('Expected `it` to be the `it` of your test runner');
  });
});

testModel(talking, { name: 'scriptedModel', thinking, failing, describe, it });
