/** Middleware of the model seam inside the AI SDK: for `generateText`, `streamText` and `wrapLanguageModel`. */

import { AlliumError, type MiddlewareList } from 'allium';
import { describeValue, flattenMiddleware, invalidOption, isRecord } from 'allium/kit';
import { partsOf, streamOf, wholeOf } from './answers.js';
import { checkFits } from './fits-model-call.js';
import { type AiSdkLanguageModel, type Loose, specVersionOf } from './language-model.js';
import { checkOptions } from './options.js';
import { type Ask, runOnce, stream } from './run-once.js';
import { streamOrGenerate } from './unstreamed.js';

export interface ToAiSdkOptions {
  /** The tenant, which `cache`, `rateLimit` and `budget` keep apart. @default none */
  readonly tenant?: string;
  /**
   * What a stream does if an answer that was partly shown is taken back, for example by a retry. The AI SDK can't
   * express that. `error` ends the stream with an error; `hold` shows answers only when they are complete. @default
   * 'error'
   */
  readonly onReset?: 'error' | 'hold';
}

// biome-ignore lint/suspicious/noExplicitAny: versions 5, 6 and 7 of the AI SDK type these differently, and we fit all.
type Any = any;

/** What `wrapLanguageModel` takes as its middleware, in `ai` 5 to 7. */
export interface AiSdkMiddleware {
  readonly specificationVersion: Any;
  readonly middlewareVersion: Any;
  wrapGenerate(call: Any): Promise<Any>;
  wrapStream(call: Any): Promise<Any>;
}

/**
 * A language model of the AI SDK with a stack of middleware around it. Guards judge generated and streamed answers
 * alike.
 *
 * @example
 * const model = toAiSdk(openai('gpt-5'), [retry(), cache()]);
 * const { text } = await generateText({ model, prompt: 'Hello?' });
 */
export function toAiSdk<M extends AiSdkLanguageModel>(
  model: M,
  stack: MiddlewareList,
  options: ToAiSdkOptions = {},
): M {
  checkFirst(model);
  const { wrapGenerate, wrapStream } = asLanguageModelMiddleware(stack, options);
  const own: Loose = {
    doGenerate: (params: Loose) => wrapGenerate({ params, model }),
    doStream: (params: Loose) => wrapStream({ params, model }),
  };
  // Its getters run on the model itself: they may read private fields.
  const get = (_: object, name: string | symbol): unknown =>
    Object.hasOwn(own, name) ? own[name as string] : Reflect.get(model, name);
  return new Proxy(Object.create(model), { get }) as M;
}

function checkFirst(model: unknown): void {
  const has = (name: string): boolean => isRecord(model) && name in model;
  if (has('doStream')) return;
  const problem = has('stream')
    ? has('run')
      ? 'is an agent'
      : 'is a model of Allium, which goes into an Agent'
    : Array.isArray(model)
      ? 'is a list: the model comes first'
      : has('model')
        ? 'is an object with `model`: pass the model itself'
        : `is ${describeValue(model)}`;
  throw new AlliumError(
    'INVALID_OPTION',
    `toAiSdk() takes a model of the AI SDK and a list of middleware, as in toAiSdk(openai('gpt-5'), [retry()]). Its first argument ${problem}.`,
    { data: { option: 'model' } },
  );
}

/**
 * The same as a middleware of the AI SDK.
 *
 * @example
 * const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: asLanguageModelMiddleware([retry()]) });
 */
export function asLanguageModelMiddleware(
  stack: MiddlewareList,
  options: ToAiSdkOptions = {},
): AiSdkMiddleware {
  checkOptions('asLanguageModelMiddleware', options, ['tenant', 'onReset']);
  const { onReset = 'error' } = options;
  if (onReset !== 'error' && onReset !== 'hold') throw invalidOption('onReset', "'error' or 'hold'", onReset);
  const middleware = flattenMiddleware(stack, 'stack');
  for (const one of middleware) checkFits(one);
  type Call = { readonly params: Loose; readonly model: AiSdkLanguageModel };
  const begin = ({ params, model }: Call, ask: Ask) => runOnce(middleware, model, params, options, ask);
  return {
    specificationVersion: 'v3',
    middlewareVersion: 'v2',
    wrapGenerate: async (call: Call) => wholeOf(begin(call, streamOrGenerate), specVersionOf(call.model)),
    async wrapStream(call: Call) {
      const once = begin(call, stream);
      const parts = partsOf(once, specVersionOf(call.model), onReset);
      // The AI SDK repeats a call that fails before it has begun, so wait until something came.
      const first = await parts.next();
      const { request, headers } = once.told;
      return {
        stream: streamOf(first, parts),
        ...(request !== undefined && { request }),
        ...(headers !== undefined && { response: { headers } }),
      };
    },
  };
}
