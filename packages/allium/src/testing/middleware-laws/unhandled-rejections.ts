/** The law `unhandled-rejections`. */
import { messageOf } from '../../kit/index.js';
import { type Aftermath, eachInterruption, eachRun } from './aftermath.js';
import type { MiddlewareCheck } from './context.js';

export const unhandledRejections: MiddlewareCheck<'unhandled-rejections'> = {
  law: 'unhandled-rejections',
  statement: 'No promise rejects unhandled.',
  async check(context) {
    await eachRun(context, expectNone);
    await eachInterruption(context, expectNone);
  },
};

function expectNone({ stray }: Aftermath): void {
  if (stray.length === 0) return;
  throw new Error(
    `Expected no promise to reject unhandled, but ${stray.length} did. The first: ${messageOf(stray[0])}`,
  );
}
