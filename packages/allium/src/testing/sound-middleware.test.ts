import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Clock, sleep } from '../index.js';
import { type Message, type ModelResponse, textOf } from '../kernel/messages/messages.js';
import type { GuardPoint } from '../kernel/protocol/guard.js';
import type { Middleware } from '../kernel/protocol/middleware.js';
import { BaseMiddleware, defineMiddleware } from '../kit/define-middleware.js';
import { requestKey } from '../kit/request-key.js';
import { isTransient } from '../kit/transient.js';
import { window } from '../kit/window.js';
import { approval } from '../middleware/approval/index.js';
import { cache } from '../middleware/cache/index.js';
import { consoleLogger } from '../middleware/console-logger/index.js';
import { maxTurns } from '../middleware/max-turns/index.js';
import { retry } from '../middleware/retry/index.js';
import { stopwatch } from '../middleware/stopwatch/index.js';
import { piecewise } from './broken/middleware/chunk-invariance.js';
import { soothing } from './broken/middleware/error-identity.js';
import { talkative } from './broken/middleware/neutrality.js';
import { MIDDLEWARE_LAWS } from './middleware-laws/index.js';
import { text } from './scripted-model.js';
import { type CheckMiddlewareOptions, checkMiddleware, type MiddlewareFactory } from './test-middleware.js';

const tale = { name: 'a tale', answers: [text('Today I bake; my name is Rumpelstiltskin, you know.')] };

class Greeting extends BaseMiddleware {
  override readonly name = 'greeting';
  readonly #word = 'Hello';
  get guests(): never {
    throw new Error('Nobody is here yet.');
  }
  override acceptMessage(message: Message): Message {
    return textOf(message).startsWith(this.#word) ? message : { ...message };
  }
}

class Judgement {
  get on(): readonly GuardPoint[] {
    return ['output'];
  }
  judge(): undefined {
    return undefined;
  }
}

/** Middleware of every shape that does nothing wrong. */
const SOUND: readonly (readonly [string, MiddlewareFactory, CheckMiddlewareOptions?])[] = [
  ['that passes through at every seam', () => ({ name: 'through', process: (_, next) => next() })],
  [
    'made of before and after hooks',
    () => ({ name: 'pair', beforeModel() {}, async afterModel() {}, beforeTool() {}, afterTool() {} }),
  ],
  ['of a class with private fields', () => new Greeting()],
  ['that only answers questions', rules],
  ['that guards', () => guard(), { scenarios: [tale] }],
  ['with a guard of a class with getters', () => ({ name: 'judgement', guard: new Judgement() })],
  ['that waits', ({ clock }) => ({ name: 'slow', beforeModel: (ctx) => sleep(100, ctx.signal, clock) })],
  ['that changes what it declares', talkative, { changes: ['system-prompt'] }],
  [
    'with a neutral configuration of its own',
    () => piecewise(' '),
    { neutral: () => piecewise(), skip: { 'chunk-invariance': 'A space is one character.' } },
  ],
  ['that handles what it declares', soothing, { handles: ['tool-errors'] }],
  ['that reads files', reading],
  ['that reads files, in a limited time', ({ clock }) => readingInTime(clock)],
  [
    'that waits for timers of the system',
    () => ({ name: 'nap', afterTool: () => delay(0), afterRun: () => delay(5) }),
  ],
  ['that has other threads work', digesting],
  ['that asks before a call', asking, { neutral: () => ({ name: 'silent', beforeToolCall() {} }) }],
  ['approval of every call', () => approval(), { neutral: () => approval({ policy: { '*': 'allow' } }) }],
  ['that keeps answers by the whole request', remembering],
  ['cache', ({ clock }) => cache({ clock })],
  [
    'that starts turns again',
    () => ({
      name: 'again',
      seams: ['model'],
      onError: (_, error) => (isTransient(error) ? 'restart' : undefined),
    }),
  ],
  [
    'that requires another',
    () => ({ name: 'dependent', order: { requires: ['retry'], inside: ['retry'] }, beforeModel() {} }),
    { companions: ({ clock }) => [retry({ clock })] },
  ],
  [
    'that requires another inside of it',
    () => ({ name: 'dependent', order: { requires: ['retry'], outside: ['retry'] }, beforeModel() {} }),
    { companions: ({ clock }) => [retry({ clock })] },
  ],
  ['retry of models', ({ clock }) => retry({ clock }), undefined],
  ['retry of tools', ({ clock }) => retry({ clock, on: 'tool' }), undefined],
  ['maxTurns', () => maxTurns({ turns: 10 })],
  ['stopwatch', ({ clock }) => stopwatch({ clock, log: () => {} })],
  [
    'consoleLogger',
    ({ clock }) => consoleLogger({ clock, level: 'debug', console: { error() {}, info() {}, debug() {} } }),
  ],
];

/** Reads this file wherever it can. */
function reading(): Middleware {
  const read = async () => void (await readFile(new URL(import.meta.url)));
  return {
    name: 'reading',
    beforeRun: read,
    afterRun: read,
    beforeModel: read,
    afterModel: read,
    beforeTool: read,
    afterTool: read,
    beforeToolCall: read,
    afterToolCall: read,
  };
}

/** The same around every call, with an hour to do it in. */
function readingInTime(clock: Clock): Middleware {
  return {
    name: 'reading-in-time',
    async process(_, next) {
      const timer = new AbortController();
      const cancel = clock.setTimer(() => timer.abort(new Error('Late.')), 3_600_000);
      try {
        await readFile(new URL(import.meta.url), { signal: timer.signal });
      } finally {
        cancel();
      }
      return next();
    },
  };
}

function digesting(): Middleware {
  return {
    name: 'digesting',
    async wrapTool(ctx, next) {
      await crypto.subtle.digest('SHA-256', new TextEncoder().encode(ctx.toolCall.arguments));
      return next();
    },
  };
}

function asking(): Middleware {
  return {
    name: 'asking',
    suspends: true,
    beforeToolCall: (ctx) => (ctx.toolCall.name === 'kit_slow' ? { ask: { title: 'May I?' } } : undefined),
  };
}

function remembering(): Middleware {
  const answers = new Map<string, ModelResponse>();
  return {
    name: 'remembering',
    async wrapModel({ model, messages, systemPrompt, tools, settings }, next) {
      const key = requestKey({ model, messages, systemPrompt, tools, settings });
      const known = answers.get(key);
      if (known) return known;
      const answer = await next();
      answers.set(key, answer);
      return answer;
    },
  };
}

function rules(): Middleware {
  return defineMiddleware({
    name: 'rules',
    acceptMessage: (message) => message,
    transformContext: (messages) => [...messages],
    convertToLlm: (messages) => messages,
    beforeToolCall: () => undefined,
    afterToolCall: () => undefined,
    afterModelResponse: () => undefined,
    shouldStopAfterTurn: () => false,
    onRunEnd: () => [],
  });
}

function guard(): Middleware {
  const word = 'Rumpelstiltskin';
  return defineMiddleware({
    name: 'guard',
    guard: {
      on: ['input', 'output', 'tool-result'],
      hold: window(word.length),
      find: (given) =>
        [...given.matchAll(new RegExp(word, 'g'))].map(({ index }) => ({
          start: index,
          end: index + word.length,
        })),
    },
  });
}

describe('checkMiddleware finds nothing wrong with middleware', () => {
  for (const [what, factory, options] of SOUND) {
    it(what, async () => {
      const reports = await checkMiddleware(factory, options);
      expect(reports.filter(({ ok }) => !ok)).toEqual([]);
      expect(reports).toHaveLength(MIDDLEWARE_LAWS.length);
    });
  }
});
