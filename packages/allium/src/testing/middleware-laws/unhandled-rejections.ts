/** No promise is left behind that rejects without anybody looking. */
import { messageOf } from '../../kit/index.js';
import { allScenarios, fresh, type MiddlewareCheck } from './context.js';
import { eachInterruption } from './interruption.js';
import { strayRejections } from './stray-rejections.js';

export const unhandledRejections: MiddlewareCheck<'unhandled-rejections'> = {
  law: 'unhandled-rejections',
  async check(context) {
    const stray = await strayRejections(async () => {
      for (const scenario of allScenarios(context)) await fresh(context).run(scenario);
      await eachInterruption(context, () => {});
    });
    if (stray.length === 0) return;
    throw new Error(
      `Expected every promise to be awaited, but ${stray.length} rejected unhandled. The first: ${messageOf(stray[0])}`,
    );
  },
};
