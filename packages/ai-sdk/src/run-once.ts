/** One call of the AI SDK's model as a run of one turn, with the stack around it. */

import {
  Agent,
  type JsonSchema,
  type Middleware,
  type Model,
  type ModelRequest,
  type ModelSettings,
  modelName,
  type RunStream,
  type StandardSchema,
  type Tool,
  toolCallsOf,
} from 'allium';
import { readPrompt } from './from-prompt.js';
import {
  type AiSdkLanguageModel,
  type AiSdkStream,
  isObject,
  type Loose,
  specVersionOf,
} from './language-model.js';
import { BegunParts } from './live-parts.js';
import type { MapperOptions } from './part-mapper.js';
import type { PromptMessage } from './prompt.js';
import { StreamReader } from './stream-reader.js';

/** What the model gives for a call: its answer, and what was sent and received. */
export interface Answer {
  readonly stream: AiSdkStream;
  readonly request?: unknown;
  readonly response?: { readonly headers?: unknown };
}

/** How the model is asked. */
export type Ask = (model: AiSdkLanguageModel, call: object) => PromiseLike<Answer>;

export const stream: Ask = (model, call) => model.doStream(call);

/** What the model told of its last answer, beside the answer. It isn't journaled. */
export interface Told {
  /** The name of the model. Another one may have answered in the end. */
  readonly model: string;
  request?: unknown;
  headers?: unknown;
  warnings?: readonly unknown[] | undefined;
  /** The counts, as it gave them. */
  usage?: unknown;
  /** What the layers leave of its answer so far, while it streams. Afterwards another answer may take its place. */
  begun?: BegunParts | undefined;
}

export interface Once {
  readonly run: RunStream;
  readonly told: Told;
  /** Are there guards around it? */
  readonly isGuarded: boolean;
}

/** One call of the model, as a run of one turn. */
export function runOnce(
  stack: readonly Middleware[],
  model: AiSdkLanguageModel,
  params: Loose,
  { tenant }: { readonly tenant?: string },
  ask: Ask,
): Once {
  const provider = model.provider.split('.')[0] || 'ai-sdk';
  const told: Told = { model: modelName({ provider, id: model.modelId }) };
  const read = readPrompt((params.prompt ?? []) as PromptMessage[]);
  const given = (Array.isArray(params.tools) ? params.tools : []) as Loose[];
  const functions = given.filter(({ type }) => type === 'function');
  const agent = new Agent({
    model: adapterOf(model, params, read, given, asking(ask, told)),
    middleware: [beginnings(told), stack, toolsStayOutside],
    tools: functions.map(asTool),
    systemPrompt: read.systemPrompt,
    settings: settingsOf(params),
    toolChoiceTurns: 'all',
    ...(tenant !== undefined && { tenant }),
  });
  const signal = params.abortSignal as AbortSignal | undefined;
  const run = agent.stream(read.messages, { ...(signal && { signal }) });
  return { run, told, isGuarded: stack.some(({ guard }) => guard !== undefined) };
}

type Asking = (
  model: AiSdkLanguageModel,
  call: object,
  options: MapperOptions,
  signal: AbortSignal,
) => StreamReader;

/** Asks, and keeps what is told. */
function asking(ask: Ask, told: Told): Asking {
  return (model, call, options, signal) => {
    const open = async () => {
      const answer = await ask(model, call);
      told.request = answer.request;
      told.headers = answer.response?.headers;
      told.warnings = undefined;
      return answer;
    };
    const onWarnings = (warnings: readonly unknown[]) => {
      told.warnings = warnings;
    };
    const onUsage = (usage: unknown) => {
      told.usage = usage;
    };
    return new StreamReader(open, signal, { ...options, onWarnings, onUsage });
  };
}

/** Notes how parts of the answer begin. Stands outermost: further in, layers may still remove them. */
function beginnings(told: Told): Middleware {
  return {
    name: 'ai-sdk-parts',
    beforeModel(ctx) {
      ctx.transform(() => {
        const begun = new BegunParts();
        told.begun = begun;
        return {
          part(part, emit) {
            begun.take(part);
            emit(part);
          },
          end() {
            if (told.begun === begun) told.begun = undefined;
          },
        };
      });
    },
  };
}

/** The AI SDK runs the tools: a run ends with the calls of its answer. */
export const toolsStayOutside: Middleware = {
  name: 'ai-sdk',
  afterModelResponse: (response) => (toolCallsOf(response).length > 0 ? { decision: 'stop' } : undefined),
};

function adapterOf(
  model: AiSdkLanguageModel,
  params: Loose,
  read: ReturnType<typeof readPrompt>,
  given: readonly Loose[],
  ask: Asking,
): Model {
  const provider = model.provider.split('.')[0] || 'ai-sdk';
  const options = { version: specVersionOf(model), provider, keys: 'all' } as const;
  const settings = settingsOf(params);
  return {
    provider,
    id: model.modelId,
    stream(request: ModelRequest, { signal }) {
      const tools = toolsFor(request, given);
      const call = {
        ...params,
        prompt: read.write(request, { ...options, systemOptions: request.settings.systemMetadata?.provider }),
        ...changed(settings, request.settings),
        ...(tools.length > 0 && { tools }),
        abortSignal: signal,
      };
      const names = new Set(request.tools.map(({ name }) => name));
      return ask(model, call, { tools: names, acceptUnfinished: false }, signal);
    },
  };
}

/** Tools of the request, in the form the call had them. Those that the provider defines stay. */
function toolsFor({ tools }: ModelRequest, given: readonly Loose[]): Loose[] {
  const functions = new Map(given.filter(({ type }) => type === 'function').map((tool) => [tool.name, tool]));
  return [
    ...tools.map(
      ({ name, description, inputSchema }) =>
        functions.get(name) ?? { type: 'function', name, description, inputSchema },
    ),
    ...given.filter(({ type }) => type !== 'function'),
  ];
}

const SETTINGS = ['maxOutputTokens', 'temperature', 'topP', 'stopSequences', 'seed'] as const;

function settingsOf(params: Loose): ModelSettings {
  const {
    prompt: _,
    tools: __,
    abortSignal: ___,
    toolChoice,
    headers: ____,
    providerOptions,
    ...rest
  } = params;
  const known = SETTINGS.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]);
  const other = Object.entries(rest).filter(
    ([name, value]) => value !== undefined && !SETTINGS.includes(name as never),
  );
  const choice = isObject(toolChoice) ? toolChoice : undefined;
  return {
    ...Object.fromEntries(known),
    ...(choice && { toolChoice: choice.type === 'tool' ? { tool: String(choice.toolName) } : choice.type }),
    // Only for the keys of caches and recordings: the call itself has these options unchanged.
    provider: {
      ...(isObject(providerOptions) && providerOptions),
      aiSdk: JSON.parse(JSON.stringify(Object.fromEntries(other))),
    },
  } as ModelSettings;
}

/** The settings that the stack has changed. */
function changed(before: ModelSettings, after: ModelSettings): Loose {
  const plain = SETTINGS.filter((name) => after[name] !== before[name]).map((name) => [name, after[name]]);
  const { toolChoice } = after;
  const choice =
    typeof toolChoice === 'object' ? { type: 'tool', toolName: toolChoice.tool } : { type: toolChoice };
  const same = JSON.stringify(toolChoice) === JSON.stringify(before.toolChoice);
  return { ...Object.fromEntries(plain), ...(!same && toolChoice !== undefined && { toolChoice: choice }) };
}

/** A tool that is never run here. The AI SDK runs it and checks its arguments. */
function asTool({ name, description, inputSchema }: Loose): Tool {
  return {
    name: String(name),
    description: String(description ?? ''),
    input: anything(inputSchema as JsonSchema),
    idempotent: false,
    sequential: false,
    execute: () => '',
  };
}

function anything(schema: JsonSchema): StandardSchema {
  return {
    '~standard': {
      version: 1,
      vendor: 'ai-sdk',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => schema as Record<string, unknown> },
    },
  };
}
