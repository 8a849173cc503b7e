/** Any language model of the AI SDK as a model of an agent. */
import { AlliumError, type Model, type ModelPart, type ModelRequest, modelName, type Price } from 'allium';
import { invalidOption } from 'allium/kit';
import { type CallOptions, toCallOptions } from './call-options.js';
import {
  type AiSdkLanguageModel,
  type AiSdkProviderTool,
  isObject,
  type Loose,
  specVersionOf,
} from './language-model.js';
import { checkOptions } from './options.js';
import { keysOf, type ProviderOptions } from './provider-options.js';
import { StreamReader } from './stream-reader.js';

export interface FromAiSdkOptions {
  /** The name of the provider in messages and prices. @default the model's, up to its first dot */
  readonly provider?: string;
  /** The name of the model in messages and prices. @default the model's */
  readonly id?: string;
  /** US dollars per million tokens. */
  readonly price?: Price;
  /** Tools the provider defines, by the name the model knows them by: `{ web_search: openai.tools.webSearch() }`. */
  readonly providerTools?: Readonly<Record<string, AiSdkProviderTool>>;
  /** Options of the system prompt by provider, such as a cache marker. */
  readonly systemOptions?: ProviderOptions;
  /** More options for every call: `headers`, `topK`, `reasoning` (v4), `providerOptions`. The request wins. */
  readonly callOptions?: Loose;
  /** More names of providers whose options this model may see, for gateways that pass them on. */
  readonly optionKeys?: readonly string[];
  /** Takes an answer that ends without a finish reason as complete, for servers that never send one. @default false */
  readonly acceptUnfinished?: boolean;
  /**
   * False for a model that cannot follow a JSON Schema, `'without-tools'` for one that cannot if it is offered tools, too:
   * `structuredOutput` then asks through a tool. @default what is known of the model
   */
  readonly jsonMode?: Model['jsonMode'];
}

/** The names of the options, for those who take them together with their own. */
export const FROM_AI_SDK_OPTIONS = [
  'provider',
  'id',
  'price',
  'providerTools',
  'systemOptions',
  'callOptions',
  'optionKeys',
  'acceptUnfinished',
  'jsonMode',
] as const;

/**
 * A model of an agent from a language model of the AI SDK, of specification v2, v3 or v4. Errors of the provider
 * come through as the same object.
 *
 * @example
 * import { openai } from '@ai-sdk/openai';
 * const agent = new Agent({ model: fromAiSdk(openai('gpt-5')) });
 */
export function fromAiSdk(model: AiSdkLanguageModel, options: FromAiSdkOptions = {}): Model {
  checkModel(model);
  checkOptions('fromAiSdk', options, FROM_AI_SDK_OPTIONS);
  const { acceptUnfinished = false, callOptions = {}, price, systemOptions } = options;
  const providerTools = toolsByName(options.providerTools ?? {});
  const provider = options.provider ?? (model.provider.split('.')[0] || 'ai-sdk');
  const keys = new Set([...keysOf(model.provider), ...keysOf(provider), ...(options.optionKeys ?? [])]);
  const version = specVersionOf(model);
  const { jsonMode = knownJsonMode(model) } = options;
  const made = new WeakMap();
  const id = options.id ?? model.modelId;
  const prompt = { version, provider, model: modelName({ provider, id }), keys, systemOptions, made };
  const call: CallOptions = { ...prompt, providerTools, callOptions };
  return {
    provider,
    id,
    ...(price && { price }),
    ...(jsonMode !== undefined && { jsonMode }),
    stream(request: ModelRequest, { signal }): AsyncIterable<ModelPart> {
      const tools = new Set(request.tools.map(({ name }) => name));
      const open = () => model.doStream(toCallOptions(request, call, signal));
      return new StreamReader(open, signal, { tools, acceptUnfinished });
    },
  };
}

function checkModel(model: unknown): asserts model is AiSdkLanguageModel {
  if (typeof model === 'string') {
    const name = model.includes('/') ? model : `<provider>/${model}`;
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected \`model\` to be a language model of the AI SDK, got ${JSON.stringify(model)}. For a model by name use resolveModel(${JSON.stringify(name)}).`,
    );
  }
  if (!isObject(model) || typeof model.doStream !== 'function' || typeof model.provider !== 'string')
    throw invalidOption(
      'model',
      'a language model of the AI SDK, with `provider`, `modelId` and `doStream`',
      model,
    );
  const { specificationVersion } = model;
  if (typeof specificationVersion === 'string' && specificationVersion !== 'v1') return;
  throw new AlliumError(
    'INVALID_OPTION',
    `The language model ${model.provider}/${model.modelId} has specification ${JSON.stringify(specificationVersion)}; Allium understands v2, v3 and v4. Update its package: npm install <package>@latest`,
  );
}

/** Models of servers that speak like OpenAI's say so; the others are assumed to have one. */
function knownJsonMode(model: AiSdkLanguageModel): Model['jsonMode'] {
  const { supportsStructuredOutputs: supports } = model as { supportsStructuredOutputs?: unknown };
  if (supports === false) return false;
  return jsonModeOf(model.modelId);
}

/** What a model's name says about its JSON mode. */
export function jsonModeOf(id: string): Model['jsonMode'] {
  return EITHER_JSON_OR_TOOLS.test(id) ? 'without-tools' : undefined;
}

/** Gemini 1 and 2 answer 400 to a request with both. */
const EITHER_JSON_OR_TOOLS = /(?:^|\/)gemini-[12]\b/;

function toolsByName(tools: Readonly<Record<string, AiSdkProviderTool>>): CallOptions['providerTools'] {
  return new Map(
    Object.entries(tools).map(([name, tool]) => {
      const { id, args = {} } = tool as { id: string; args?: unknown };
      return [name, { id, args }];
    }),
  );
}
