/** An error of the model or a tool comes out as the same object, or as the cause of what comes out. */
import { isControl } from '../../kernel/errors.js';
import type { Middleware } from '../../kernel/middleware.js';
import { tool } from '../../kernel/tool.js';
import { brief } from '../same.js';
import { failWith, toolCalls } from '../scripted-model.js';
import { during, fresh, type MiddlewareCheck, ownTools } from './context.js';
import { kitTools, type Scenario, transient } from './scenarios.js';

const ERRORS: readonly (readonly [string, () => unknown])[] = [
  ['an error', () => new Error('Broken.')],
  ['an error of a client', () => Object.assign(new TypeError('Bad request.'), { status: 400 })],
  ['an error that may pass', transient],
  ['a thrown object', () => ({ message: 'No error at all.' })],
  ['a thrown text', () => 'Just text.'],
];

export const errorIdentity: MiddlewareCheck<'error-identity'> = {
  law: 'error-identity',
  async check(context) {
    for (const [what, make] of ERRORS) {
      const error = make();
      const places: readonly (readonly [string, 'model-errors' | 'tool-errors', Scenario])[] = [
        [`${what} of the model`, 'model-errors', { name: 'at once', answers: [failWith(error)] }],
        [
          `${what} of the model, in mid-answer`,
          'model-errors',
          { name: 'later', answers: [failWith(error, 'Good ')] },
        ],
        [
          `${what} of a tool`,
          'tool-errors',
          { name: 'tool', answers: [toolCalls({ name: 'kit_throw' }), 'Done.'] },
        ],
        [
          `${what} of an async tool`,
          'tool-errors',
          { name: 'tool', answers: [toolCalls({ name: 'kit_reject' }), 'Done.'] },
        ],
      ];
      for (const [situation, kind, scenario] of places) {
        if (context.handles.includes(kind)) continue;
        await during(situation, async () => {
          const caught: unknown[] = [];
          const tools = [...ownTools(context), ...failingTools(error)];
          const run = await fresh(context, { outer: catcher(caught), tools }).run(scenario);
          expectIdentity(caught, error, kind);
          // An error of a tool is for the model to read; one of the model ends the run and is its cause.
          if (kind === 'model-errors') expectIdentity(run.error ? [run.error] : [], error, kind);
        });
      }
    }
  },
};

function expectIdentity(caught: readonly unknown[], error: unknown, kind: string): void {
  const advice = `If it handles such errors, declare handles: ['${kind}'].`;
  if (caught.length === 0)
    throw new Error(
      `Expected ${shownError(error)} to come out, but nothing did: it was swallowed. ${advice}`,
    );
  const stranger = caught.find((one) => !originates(one, error));
  if (stranger !== undefined) {
    throw new Error(
      `Expected ${shownError(error)} itself, or an error with it as its cause, got ${shownError(stranger)}. Rethrow it, or pass { cause }. ${advice}`,
    );
  }
}

/** Is it the error, or does it name it as its cause or among its errors? */
function originates(value: unknown, error: unknown): boolean {
  for (let at = value, depth = 0; depth < 10; depth++) {
    if (at === error) return true;
    if (typeof at !== 'object' || at === null || isControl(at)) return false;
    const { cause, errors } = at as { cause?: unknown; errors?: unknown };
    if (Array.isArray(errors) && errors.includes(error)) return true;
    at = cause;
  }
  return false;
}

function catcher(caught: unknown[]): Middleware {
  const noting = async <T>(next: () => Promise<T>): Promise<T> => {
    try {
      return await next();
    } catch (error) {
      caught.push(error);
      throw error;
    }
  };
  return { name: 'outer', wrapModel: (_, next) => noting(next), wrapTool: (_, next) => noting(next) };
}

function failingTools(error: unknown) {
  const { input } = kitTools(
    () => {},
    async () => {},
    () => {},
  )[1]!;
  const description = 'Fails.';
  return [
    tool({ name: 'kit_throw', description, input, execute: () => fail(error) }),
    tool({ name: 'kit_reject', description, input, execute: async () => fail(error) }),
  ];
}

function fail(error: unknown): never {
  throw error;
}

function shownError(error: unknown): string {
  return error instanceof Error ? `${error.name} "${error.message}"` : brief(error);
}
