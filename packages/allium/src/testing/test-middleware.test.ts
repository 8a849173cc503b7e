import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sleep, tool } from '../index.js';
import { smuggler } from './broken/middleware/abort-calls.js';
import { goodNewsOnly } from './broken/middleware/calls-answered.js';
import { piecewise, stutterCure } from './broken/middleware/chunk-invariance.js';
import { offended, stubborn, unstoppable } from './broken/middleware/control-signals.js';
import { deafBackOff, eavesdropping, hopeful } from './broken/middleware/dangling-timers.js';
import { contented, nearSighted } from './broken/middleware/end-of-history.js';
import { diplomatic, friendly, soothing } from './broken/middleware/error-identity.js';
import {
  anonymous,
  blind,
  narrow,
  oldFashioned,
  rosy,
  salesman,
  singleFile,
  superficial,
  talkative,
  tepid,
  tightLipped,
  wordsOnly,
} from './broken/middleware/neutrality.js';
import {
  annotating,
  counting,
  pilfering,
  scribbling,
  scribblingInSecret,
  scribblingOnParts,
} from './broken/middleware/no-mutation.js';
import { forgetful, impatient, shortSighted, weary } from './broken/middleware/no-shared-state.js';
import { oncePerTurn, piling } from './broken/middleware/second-next.js';
import { lateRace } from './broken/middleware/unhandled-rejections.js';
import { MIDDLEWARE_LAWS, type MiddlewareLaw } from './middleware-laws/index.js';
import { text, toolCalls } from './scripted-model.js';
import {
  type CheckMiddlewareOptions,
  checkMiddleware,
  type MiddlewareFactory,
  testMiddleware,
} from './test-middleware.js';

const tale = { name: 'a tale', answers: [text('Today I bake; my name is Rumpelstiltskin, you know.')] };

/** Per law: middleware that breaks it and nothing else, and a part of what is said about it. */
const BROKEN: Record<
  MiddlewareLaw,
  readonly (readonly [MiddlewareFactory, string, CheckMiddlewareOptions?])[]
> = {
  neutrality: [
    [talkative, "declare changes: ['system-prompt']"],
    [salesman, 'Expected `tools` to be "kit_add of the test kit.", as without it,'],
    [tightLipped, "declare changes: ['tools']"],
    [oldFashioned, 'Expected `events` to be "agent_end", as without it, got "turn_start"'],
    [superficial, 'to be {"rows":[1,2]}, as without it, got undefined'],
    [wordsOnly, 'to be {"type":"image"'],
    [rosy, 'to be true, as without it, got false'],
    [blind, "declare changes: ['request-messages']"],
    [anonymous, 'to be {"from":"kit","nested":{"list":[1,2]}}, as without it, got undefined'],
    [narrow, 'In "everything that messages and results can hold (stream)": Expected `events`'],
    [tepid, "declare changes: ['settings']"],
    [
      singleFile,
      'In "two tool calls that wait for each other (stream)": Expected `messages` to be "together", as without it, got "alone"',
    ],
  ],
  'chunk-invariance': [
    [() => piecewise(), 'in pieces of 1": Expected `messages`', { scenarios: [tale] }],
    [stutterCure, 'in pieces of 1": Expected `messages`'],
  ],
  'abort-calls': [[smuggler, 'Expected no call of the model or a tool after the abort, got 1.']],
  'dangling-timers': [
    [hopeful, 'Expected no timer of the clock to be left after the abort, got 1.'],
    [deafBackOff, 'In "aborted after a model call that failed": Expected no timer'],
    [eavesdropping, 'In "eight turns": Expected every call to remove its listener from ctx.signal, but 8'],
  ],
  'unhandled-rejections': [
    [lateRace, 'Expected no promise to reject unhandled, but 1 did. The first: The bench aborts.'],
  ],
  'second-next': [
    [oncePerTurn, 'with next() called twice in a row around it": Expected the conversation'],
    [piling, 'as when it is called once'],
  ],
  'no-mutation': [
    [scribbling, 'but beforeModel tried (Cannot add property lastTurn, object is not extensible)'],
    [scribblingInSecret, 'Expected the input, metadata, settings and model to be'],
    [pilfering, 'Expected the list of tools that an outer layer assigned to be "'],
    [annotating, "but wrapTool tried (Cannot assign to read only property 'message'"],
    [counting, 'but wrapModel tried (Cannot add property attempts, object is not extensible)'],
    [scribblingOnParts, "but a stream transform tried (Cannot assign to read only property 'text'"],
  ],
  'no-shared-state': [
    [forgetful, 'as when it runs alone'],
    [shortSighted, '"1 + 2" and then "2 + 1"": Expected `events` of the second run to be'],
    [weary, 'In "20 runs of one session": Expected the end of the last run', { changes: ['state'] }],
    [impatient, 'In "20 runs, one after the other": Expected `events` of the last run to be'],
  ],
  'error-identity': [
    [friendly, 'Expected Error "Broken." itself, or an error with it as its cause'],
    [soothing, 'In "an error of a tool": Expected Error "Broken." to come out, but it was swallowed.'],
    [
      diplomatic,
      'In "an error of the model": Expected Error "Broken." itself, or an error with it as its cause, got RunError "The run failed',
    ],
  ],
  'control-signals': [
    [unstoppable, 'wrapModel swallowed the abort signal that came through it.'],
    [stubborn, 'wrapTool called next() again after the stop signal that came through it.'],
    [offended, 'Do not count control signals as failures.'],
  ],
  'calls-answered': [
    [
      goodNewsOnly,
      'Expected a result for every tool call in request 2 to the model, but there is none for',
      { changes: ['request-messages'] },
    ],
  ],
  'end-of-history': [
    [nearSighted, 'Expected `system-prompt`'],
    [contented, 'Expected `request-messages`'],
  ],
};

describe('the suite names the law that a broken middleware breaks', () => {
  for (const [law, cases] of Object.entries(BROKEN)) {
    for (const [factory, says, options] of cases) {
      it(`${law} is broken by ${factory({ clock: { now: () => 0, setTimer: () => () => {} } }).name}`, async () => {
        const failed = (await checkMiddleware(factory, options)).filter(({ ok }) => !ok);
        expect(
          failed.map((report) => report.law),
          JSON.stringify(failed, null, 2),
        ).toEqual([law]);
        expect(failed[0]?.error).toContain(says);
      });
    }
  }
});

describe('checkMiddleware', () => {
  it('reports a middleware that hangs instead of hanging with it', async () => {
    const stuck = () => ({ name: 'stuck', beforeModel: () => new Promise<void>(() => {}) });
    const reports = await checkMiddleware(stuck, { timeoutMs: 20 });
    expect(reports.find(({ law }) => law === 'neutrality')?.error).toBe(
      'In "an answer of text (stream)": The run did not end within 20 ms.',
    );
  });

  it('reports the error of a run that fails only with the middleware', async () => {
    const broken = () => ({
      name: 'broken',
      beforeModel() {
        throw new TypeError('my own bug');
      },
    });
    const reports = await checkMiddleware(broken);
    expect(reports.find(({ law }) => law === 'neutrality')?.error).toMatch(
      /^In "an answer of text \(stream\)": The run fails only with the middleware: .*my own bug/,
    );
  });

  it('reports a factory that throws', async () => {
    const reports = await checkMiddleware(() => {
      throw new Error('no such file');
    });
    expect(new Set(reports.map(({ error }) => error?.replace(/^In ".*?": /, '')))).toEqual(
      new Set(['no such file']),
    );
  });

  it.each([
    ['a promise', async () => talkative(), '[object Promise]'],
    ['a list', () => [talkative()], '[{"name":"talkative"}]'],
  ])('reports a factory that makes %s', async (_, factory, shown) => {
    const reports = await checkMiddleware(factory as never);
    expect(new Set(reports.map(({ error }) => error?.replace(/^In ".*?": /, '')))).toEqual(
      new Set([`Expected \`factory()\` to be one middleware, made at once, got ${shown}.`]),
    );
  });

  it('gives the factory the clock that it moves on', async () => {
    const waited: number[] = [];
    await checkMiddleware(
      ({ clock }) => ({
        name: 'hour',
        async beforeModel(ctx) {
          const started = clock.now();
          await sleep(3_600_000, ctx.signal, clock);
          waited.push(clock.now() - started);
        },
      }),
      { timeoutMs: 1000 },
    );
    expect(new Set(waited)).toEqual(new Set([3_600_000]));
  });

  it("tries the author's scenarios and its own, with a new instance for nearly every run", async () => {
    const asked = new Set<string>();
    let made = 0;
    const ping = tool({ name: 'ping', description: 'Pings.', input: z.object({}), execute: () => 'pong' });
    const scenario = {
      name: 'ping',
      input: 'Ping!',
      answers: [toolCalls({ name: 'ping' }), text('Pong.')],
      tools: [ping],
    };
    const reports = await checkMiddleware(
      () => {
        made++;
        return {
          name: 'listening',
          beforeTool: (ctx) => {
            asked.add(`${ctx.toolCall.name}${ctx.tool === ping ? ' itself' : ''}`);
          },
        };
      },
      { scenarios: [scenario, { ...scenario, name: 'ping again' }] },
    );
    expect(reports.filter(({ ok }) => !ok)).toEqual([]);
    expect(asked).toContain('ping itself');
    expect(asked).toContain('kit_add');
    expect(made).toBeGreaterThan(100);
  });

  it('finds the same with the same seed', async () => {
    const reports = async (seed: number) => checkMiddleware(() => piecewise(), { scenarios: [tale], seed });
    expect(await reports(3)).toEqual(await reports(3));
  });

  it('does not try a law that is skipped', async () => {
    const reports = await checkMiddleware(talkative, { skip: { neutrality: 'It is talkative.' } });
    expect(reports[0]).toEqual({ law: 'neutrality', ok: true, skipped: 'It is talkative.' });
    expect(reports.filter(({ ok }) => !ok)).toEqual([]);
  });

  it('refuses wrong options and says what it expects', async () => {
    await expect(checkMiddleware({} as never)).rejects.toThrow(
      'Expected `factory` to be a function that makes a middleware',
    );
    await expect(checkMiddleware(talkative, { changes: ['sytem-prompt'] as never })).rejects.toThrow(
      'Did you mean "system-prompt"?',
    );
    await expect(checkMiddleware(talkative, { handles: ['errors'] as never })).rejects.toThrow(
      '`handles` may hold model-errors, tool-errors',
    );
    await expect(checkMiddleware(talkative, { skip: { neutral: 'x' } as never })).rejects.toThrow(
      'which is not a law.',
    );
    await expect(checkMiddleware(talkative, { skip: { neutrality: '' } })).rejects.toThrow(
      'to be the reason, as text',
    );
    await expect(checkMiddleware(talkative, { scenarios: [{ name: 'x' }] as never })).rejects.toThrow(
      'Expected `scenario.answers`',
    );
    const answers = [() => 'Hi.'];
    await expect(
      checkMiddleware(talkative, { scenarios: [{ name: 'x', answers }] as never }),
    ).rejects.toThrow(
      'Expected `scenario.answers[0]` to be text, a list of content, or a step such as toolCalls(), got a function.',
    );
    await expect(checkMiddleware(talkative, { companions: [talkative()] as never })).rejects.toThrow(
      'Expected `companions` to be a function that makes a list of middleware',
    );
    await expect(checkMiddleware(talkative, { seed: 0.5 })).rejects.toThrow(
      'Expected `seed` to be an integer, got 0.5.',
    );
    await expect(checkMiddleware(talkative, { timeoutMs: 0 })).rejects.toThrow(
      'Expected `timeoutMs` to be a number > 0',
    );
    await expect(checkMiddleware(talkative, { change: [] } as never)).rejects.toThrow(
      'Did you mean `changes`?',
    );
  });
});

describe('testMiddleware', () => {
  function declared(
    options: Partial<Parameters<typeof testMiddleware>[1]> = {},
  ): Map<string, () => Promise<void>> {
    const tests = new Map<string, () => Promise<void>>();
    testMiddleware(talkative, {
      describe: (_, fn) => fn(),
      it: (name, fn) => tests.set(name, fn),
      ...options,
    });
    return tests;
  }

  it('declares one test per law, except those that are skipped', () => {
    expect([...declared().keys()]).toEqual(MIDDLEWARE_LAWS.map(({ law }) => law));
    expect(declared({ skip: { neutrality: 'It is talkative.' } }).has('neutrality')).toBe(false);
  });

  it('fails the test of a law that does not hold, says what the law is, and passes the others', async () => {
    await expect(declared().get('neutrality')!()).rejects.toThrow(
      /declare changes: \['system-prompt'\].*\nThe law "neutrality" says: With nothing to do, the middleware changes/,
    );
    await expect(declared().get('error-identity')!()).resolves.toBeUndefined();
  });

  it('asks for `it` and `describe` if there are no global ones', () => {
    expect(() => testMiddleware(talkative, { describe })).toThrow(
      'Expected `it` to be the `it` of your test runner',
    );
  });
});

testMiddleware(() => ({ name: 'through', process: (_, next) => next() }), {
  name: 'a pass-through',
  describe,
  it,
});
