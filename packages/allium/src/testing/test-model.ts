/** The conformance suite of the model port: one test per law, for the adapters here and for yours. */

import type { Message, Model, ModelRequest, ModelResponse, ToolSpec } from '../index.js';
import { checkKeys, invalidOption, toMessages } from '../kit/index.js';
import { checkLaws, declareLaws, type LawReport, type RunnerOptions, type Skips } from './law-runner.js';
import type { Capability, ModelLawContext } from './model-laws/context.js';
import { MODEL_LAWS, type ModelLaw } from './model-laws/index.js';

export type { ModelLaw } from './model-laws/index.js';

/** A request. Fields that are left out have a default. */
export type RequestOptions = Partial<Omit<ModelRequest, 'messages'>> & {
  readonly messages?: string | readonly Message[];
};

/** How a capability is tried. */
export interface CapabilityOptions {
  /** What the model is asked, instead of the kit's own request. */
  readonly request?: RequestOptions;
  /** Checks the answer: throws if it is wrong. */
  readonly expect?: (response: ModelResponse) => void;
}

export interface CheckModelOptions {
  /** A request that is answered with text, long enough to be aborted on its way. @default a greeting */
  readonly text?: CapabilityOptions;
  /** A request that is answered with a tool call, better with several. @default the weather in two cities */
  readonly toolCall?: CapabilityOptions;
  /** A request that is answered with thinking. The law `thinking` needs it. */
  readonly thinking?: CapabilityOptions;
  /** A call that has to fail, because of its model (a wrong key, a server that is down) or its request. */
  readonly failing?: { readonly model?: Model | (() => Model); readonly request?: RequestOptions };
  /** Does the same request get the same answer? False for a live model. @default true */
  readonly deterministic?: boolean;
  /** Laws that do not hold, each with the reason. */
  readonly skip?: Skips<ModelLaw>;
  /** Milliseconds an aborted stream may take to end. @default 1000 */
  readonly abortWithinMs?: number;
  /** Milliseconds an answer may take. @default 30000 */
  readonly timeoutMs?: number;
}

export interface TestModelOptions extends CheckModelOptions, RunnerOptions {}

const OPTIONS = [
  'text',
  'toolCall',
  'thinking',
  'failing',
  'deterministic',
  'skip',
  'abortWithinMs',
  'timeoutMs',
];

const WEATHER: ToolSpec = {
  name: 'get_weather',
  description: 'The weather in a city right now.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

/**
 * Declares one test per law with vitest, node:test or any runner of that shape. Takes a model, or a function that makes one.
 *
 * @example
 * ```ts
 * import { describe, it } from 'node:test';
 * testModel(() => myModel({ fetch: recorded }), {
 *   name: 'my model',
 *   failing: { model: () => myModel({ fetch: unavailable }) },
 *   skip: { thinking: 'It does not think aloud.' },
 *   describe,
 *   it,
 * });
 * ```
 */
export function testModel(model: Model | (() => Model), options: TestModelOptions = {}): void {
  checkKeys('`testModel`', options, [...OPTIONS, 'name', 'it', 'describe']);
  const { name = 'model', it, describe, ...rest } = options;
  declareLaws(MODEL_LAWS, contextOf(model, rest), rest.skip, { name, it, describe });
}

/** Tries every law and reports by name. A law that lacks something it needs is reported as skipped. */
export async function checkModel(
  model: Model | (() => Model),
  options: CheckModelOptions = {},
): Promise<readonly LawReport<ModelLaw>[]> {
  checkKeys('`checkModel`', options, OPTIONS);
  return checkLaws(MODEL_LAWS, contextOf(model, options), options.skip);
}

function contextOf(model: Model | (() => Model), options: CheckModelOptions): ModelLawContext {
  const {
    text = {},
    toolCall = {},
    thinking,
    failing,
    deterministic = true,
    abortWithinMs = 1000,
    timeoutMs = 30_000,
  } = options;
  for (const [name, ms] of Object.entries({ abortWithinMs, timeoutMs })) {
    if (!(ms > 0)) throw invalidOption(name, 'a number > 0', ms);
  }
  if (failing) checkKeys('`failing`', failing, ['model', 'request']);
  const open = opener('model', model);
  return {
    open,
    failing: failing && {
      open: failing.model === undefined ? open : opener('failing.model', failing.model),
      request: requestOf('failing.request', { messages: 'Hello.' }, failing.request),
    },
    text: capability('text', { messages: 'Greet me in one sentence.' }, text),
    toolCall: capability(
      'toolCall',
      { messages: 'Compare the weather in Oslo and in Rome.', tools: [WEATHER] },
      toolCall,
    ),
    thinking:
      thinking && capability('thinking', { messages: 'Is 221 a prime number? Think first.' }, thinking),
    deterministic,
    abortWithinMs,
    timeoutMs,
  };
}

function opener(option: string, model: Model | (() => Model)): () => Model {
  if (typeof model !== 'function') {
    if (typeof model?.stream === 'function') return () => model;
    throw invalidOption(option, 'a model, or a function that makes one', model);
  }
  return () => {
    const made = model();
    if (typeof made?.stream === 'function') return made;
    throw invalidOption(`${option}()`, 'a model with provider, id and stream()', made);
  };
}

function capability(option: string, usual: RequestOptions, given: CapabilityOptions): Capability {
  checkKeys(`\`${option}\``, given, ['request', 'expect']);
  return { request: requestOf(`${option}.request`, usual, given.request), expect: given.expect };
}

/** Makes a new request each time, so that a law can tell whether one was changed. */
function requestOf(option: string, usual: RequestOptions, given: RequestOptions = {}): () => ModelRequest {
  checkKeys(`\`${option}\``, given, ['messages', 'systemPrompt', 'tools', 'settings']);
  const { messages = '', systemPrompt = '', tools = [], settings = {} } = { ...usual, ...given };
  const request: ModelRequest = { messages: toMessages(messages), systemPrompt, tools, settings };
  return () => structuredClone(request);
}
