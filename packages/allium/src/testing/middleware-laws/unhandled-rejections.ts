/** No promise is left behind that rejects without anybody looking. */
import { messageOf } from '../../kit/index.js';
import { type Aftermath, eachInterruption, eachRun } from './aftermath.js';
import type { MiddlewareCheck } from './context.js';

export const unhandledRejections: MiddlewareCheck<'unhandled-rejections'> = {
  law: 'unhandled-rejections',
  async check(context) {
    await eachRun(context, expectNone);
    await eachInterruption(context, expectNone);
  },
};

function expectNone({ stray }: Aftermath): void {
  if (stray.length === 0) return;
  throw new Error(
    `Expected every promise to be awaited, but ${stray.length} rejected unhandled. The first: ${messageOf(stray[0])}`,
  );
}
