/** The law `error-identity`. */

import { isControl, type Middleware, tool } from '../../index.js';
import { controlKind } from '../../kit/index.js';
import { brief } from '../same.js';
import { type Answer, failWith, toolCalls } from '../scripted-model.js';
import { during, fresh, type MiddlewareCheck, ownTools, runApproved } from './context.js';
import { anything, transient } from './scenarios.js';

const ERRORS: readonly (readonly [string, () => unknown])[] = [
  ['an error', () => new Error('Broken.')],
  ['an error of a client', () => Object.assign(new TypeError('Bad request.'), { status: 400 })],
  ['an error that may pass', transient],
  ['a thrown object', () => ({ message: 'No error at all.' })],
  ['a thrown text', () => 'Just text.'],
];

type Kind = 'model-errors' | 'tool-errors';

const PLACES: readonly (readonly [string, Kind, (error: unknown) => readonly Answer[]])[] = [
  ['of the model', 'model-errors', (error) => [failWith(error)]],
  ['of the model, in mid-answer', 'model-errors', (error) => [failWith(error, 'Good ')]],
  ['of a tool', 'tool-errors', () => [toolCalls({ name: 'kit_throw' }), 'Done.']],
  ['of an async tool', 'tool-errors', () => [toolCalls({ name: 'kit_reject' }), 'Done.']],
];

export const errorIdentity: MiddlewareCheck<'error-identity'> = {
  law: 'error-identity',
  statement:
    'An error of the model or a tool comes out as the same object, or as the `cause` of the error that comes out.',
  async check(context) {
    for (const [what, make] of ERRORS) {
      for (const [where, kind, answersOf] of PLACES) {
        if (context.handles.includes(kind)) continue;
        const name = `${what} ${where}`;
        await during(name, async () => {
          const error = make();
          const caught: unknown[] = [];
          const tools = [...ownTools(context), ...failingTools(error)];
          const bench = fresh(context, { outer: catcher(caught), tools });
          const run = (await runApproved(bench, { name, answers: answersOf(error) })).at(-1)!;
          expectIdentity(caught, error, kind);
          // The model reads an error of a tool. An error of the model ends the run and is the cause of its error.
          if (kind === 'model-errors') expectIdentity(run.error ? [run.error] : [], error, kind);
        });
      }
    }
  },
};

function expectIdentity(caught: readonly unknown[], error: unknown, kind: string): void {
  const advice = `If it handles such errors on purpose, declare handles: ['${kind}'].`;
  if (caught.length === 0)
    throw new Error(`Expected ${shownError(error)} to come out, but it was swallowed. ${advice}`);
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
    // Only one control signal has a cause: a turn that starts again because of an error.
    if (typeof at !== 'object' || at === null || (isControl(at) && controlKind(at) !== 'restart'))
      return false;
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
  const description = 'Fails.';
  return [
    tool({ name: 'kit_throw', description, input: anything, execute: () => fail(error) }),
    tool({ name: 'kit_reject', description, input: anything, execute: async () => fail(error) }),
  ];
}

function fail(error: unknown): never {
  throw error;
}

function shownError(error: unknown): string {
  return error instanceof Error ? `${error.name} "${error.message}"` : brief(error);
}
