/** Middleware of the model seam inside the AI SDK: for `generateText`, `streamText` and `wrapLanguageModel`. */

import {
  Agent,
  type AgentEvent,
  AlliumError,
  type AssistantMessage,
  type JsonSchema,
  type Middleware,
  type MiddlewareList,
  type Model,
  type ModelRequest,
  type ModelSettings,
  RunError,
  type RunStream,
  type StandardSchema,
  type Tool,
  toolCallsOf,
} from 'allium';
import { checkMethods, flattenMiddleware, invalidOption } from 'allium/kit';
import { readPrompt } from './from-prompt.js';
import {
  type AiSdkLanguageModel,
  type AiSdkStream,
  isObject,
  type Loose,
  type SpecVersion,
  specVersionOf,
} from './language-model.js';
import { checkOptions } from './options.js';
import type { PromptMessage } from './prompt.js';
import { keysOf } from './provider-options.js';
import { StreamReader } from './stream-reader.js';
import { contentPart, ending, responseOf, toContent, warningsOf, withMetadata } from './to-content.js';
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

/** Hooks about things outside a model call, which the AI SDK does itself. */
const OUTSIDE: Partial<Record<keyof Middleware, string>> = {
  tools: 'give its tools to generateText() or streamText()',
  wrapRun: 'use wrapModel, which surrounds each call',
  beforeRun: 'use beforeModel',
  afterRun: 'use afterModel',
  wrapTool: 'the AI SDK runs the tools',
  beforeTool: 'the AI SDK runs the tools',
  afterTool: 'the AI SDK runs the tools',
  resolveToolCall: 'the AI SDK runs the tools',
  beforeToolCall: 'the AI SDK runs the tools; use their `needsApproval`',
  afterToolCall: 'the AI SDK runs the tools',
  shouldStopAfterTurn: 'use `stopWhen`',
  onRunEnd: 'the AI SDK ends the loop',
};

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
  checkMethods('model', model, ['doStream']);
  const { wrapGenerate, wrapStream } = asLanguageModelMiddleware(stack, options);
  return Object.create(model, {
    doGenerate: { value: (params: Loose) => wrapGenerate({ params, model }) },
    doStream: { value: (params: Loose) => wrapStream({ params, model }) },
  }) as M;
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
    async wrapGenerate(call: Call) {
      const message = await lastAnswer(begin(call, streamOrGenerate));
      return {
        content: toContent(message),
        ...ending(message, specVersionOf(call.model)),
        warnings: warningsOf(message),
        response: responseOf(message),
      };
    },
    async wrapStream(call: Call) {
      const parts = partsOf(begin(call, stream), specVersionOf(call.model), onReset);
      // The AI SDK repeats a call that fails before it has begun, so wait until something came.
      const first = await parts.next();
      return { stream: streamOf(first, parts) };
    },
  };
}

/** Reports now what can't work inside a model call. */
function checkFits(middleware: Middleware): void {
  const name = middleware.name ?? 'unnamed';
  const fail = (what: string, remedy: string) =>
    new AlliumError(
      'INVALID_MIDDLEWARE',
      `Middleware "${name}" has ${what}, which does not work inside the AI SDK, where a middleware sees single model calls only: ${remedy}.`,
      { data: { middleware: name } },
    );
  for (const [member, remedy] of Object.entries(OUTSIDE)) {
    const value = middleware[member as keyof Middleware];
    if (value !== undefined && !(Array.isArray(value) && value.length === 0))
      throw fail(`\`${member}\``, remedy!);
  }
  const session = middleware.state?.find(({ scope }) => scope === 'session');
  if (session) throw fail(`the session cell "${session.name}"`, 'each call is a session of its own');
  if (middleware.seams?.some((seam) => seam !== 'model'))
    throw fail(`\`seams: ${JSON.stringify(middleware.seams)}\``, "give it seams: ['model']");
  if (middleware.suspends) throw fail('`suspends`', 'nobody can be asked there');
  const { guard } = middleware;
  if (guard?.on.includes('tool-result') && !guard.on.includes('request'))
    throw fail(
      "a guard on 'tool-result'",
      "results of tools come with the next request, so put 'request' in its `on`",
    );
}

/** How the model is asked. */
type Ask = (model: AiSdkLanguageModel, call: object) => PromiseLike<{ readonly stream: AiSdkStream }>;

const stream: Ask = (model, call) => model.doStream(call);

/** One call of the model, as a run of one turn. */
function runOnce(
  stack: readonly Middleware[],
  model: AiSdkLanguageModel,
  params: Loose,
  { tenant }: ToAiSdkOptions,
  ask: Ask,
): RunStream {
  const read = readPrompt((params.prompt ?? []) as PromptMessage[]);
  const given = (Array.isArray(params.tools) ? params.tools : []) as Loose[];
  const functions = given.filter(({ type }) => type === 'function');
  const agent = new Agent({
    model: adapterOf(model, params, read, given, ask),
    middleware: [stack, toolsStayOutside],
    tools: functions.map(asTool),
    systemPrompt: read.systemPrompt,
    settings: settingsOf(params),
    toolChoiceTurns: 'all',
    ...(tenant !== undefined && { tenant }),
  });
  const signal = params.abortSignal as AbortSignal | undefined;
  return agent.stream(read.messages, { ...(signal && { signal }) });
}

/** The AI SDK runs the tools: a run ends with the calls of its answer. */
const toolsStayOutside: Middleware = {
  name: 'ai-sdk',
  afterModelResponse: (response) => (toolCallsOf(response).length > 0 ? { decision: 'stop' } : undefined),
};

function adapterOf(
  model: AiSdkLanguageModel,
  params: Loose,
  read: ReturnType<typeof readPrompt>,
  given: readonly Loose[],
  ask: Ask,
): Model {
  const provider = model.provider.split('.')[0] || 'ai-sdk';
  const options = { version: specVersionOf(model), provider, keys: keysOf(model.provider) };
  const settings = settingsOf(params);
  return {
    provider,
    id: model.modelId,
    stream(request: ModelRequest, { signal }) {
      const tools = toolsFor(request, given);
      const call = {
        ...params,
        prompt: read.write(request, options),
        ...changed(settings, request.settings),
        ...(tools.length > 0 && { tools }),
        abortSignal: signal,
      };
      const names = new Set(request.tools.map(({ name }) => name));
      return new StreamReader(() => ask(model, call), signal, { tools: names, acceptUnfinished: false });
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
    // For keys of caches and recordings: the call has them as they are.
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

/** Never run here, so the AI SDK checks its arguments. */
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

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────

async function lastAnswer(run: RunStream): Promise<AssistantMessage> {
  const result = await run.result.catch(rethrow);
  const answer = result.messages.findLast((message) => message.role === 'assistant');
  // Our own stop comes with calls; any other is a refusal.
  const own = result.stop?.by === toolsStayOutside.name;
  if (answer && (result.status === 'done' || own)) return answer as AssistantMessage;
  const { reason = result.status, message = 'The call was stopped.', by } = result.stop ?? {};
  throw new AlliumError('MODEL_CALL_STOPPED', message, { data: { reason, by } });
}

/** Errors of the provider pass through as the same object: the AI SDK knows which of them to retry. */
function rethrow(error: unknown): never {
  throw error instanceof RunError && error.code === 'MODEL_ERROR' ? (error.cause ?? error) : error;
}

/**
 * The parts of a stream of the AI SDK. Blocks end when the answer is complete: only then is the provider's metadata
 * known.
 */
async function* partsOf(
  run: RunStream,
  version: SpecVersion,
  onReset: 'error' | 'hold',
): AsyncGenerator<Loose, undefined> {
  const open = new Map<number, 'text' | 'reasoning'>();
  let shown: string | undefined;
  try {
    for await (const event of run) {
      if (onReset === 'hold') continue;
      const parts = [...live(event, open)];
      const again =
        event.type === 'message_reset'
          ? event.messageId === shown
          : parts.length > 0 && shown !== undefined && messageOf(event) !== shown;
      if (again)
        throw new AlliumError(
          'ANSWER_TAKEN_BACK',
          "An answer was withdrawn after part of it had been streamed, and a stream of the AI SDK cannot express that. Use onReset: 'hold'.",
        );
      if (parts.length === 0) continue;
      if (shown === undefined) yield { type: 'stream-start', warnings: [] };
      shown = messageOf(event);
      yield* parts;
    }
  } catch (error) {
    // The result reports why the run failed.
    if (error instanceof AlliumError && error.code === 'ANSWER_TAKEN_BACK') throw error;
  }
  const answer = await lastAnswer(run);
  if (shown === undefined) yield { type: 'stream-start', warnings: warningsOf(answer) };
  yield { type: 'response-metadata', ...responseOf(answer) };
  for (const [block, part] of answer.content.entries()) yield* whole(block, part, open);
  yield { type: 'finish', ...ending(answer, version) };
}

function messageOf(event: AgentEvent): string | undefined {
  return 'messageId' in event ? event.messageId : undefined;
}

/** Text and thinking as they come; calls follow when they are whole. */
function* live(event: AgentEvent, open: Map<number, 'text' | 'reasoning'>): Generator<Loose> {
  if (event.type !== 'message_update' || event.delta.type === 'tool-call') return;
  const { type, block, text } = event.delta;
  const kind = type === 'text' ? 'text' : 'reasoning';
  if (!open.has(block)) {
    open.set(block, kind);
    yield { type: `${kind}-start`, id: String(block) };
  }
  yield { type: `${kind}-delta`, id: String(block), delta: text };
}

/** The rest of a part: its end if it was shown already, otherwise all of it. */
function* whole(
  block: number,
  part: AssistantMessage['content'][number],
  open: ReadonlyMap<number, string>,
): Generator<Loose> {
  if (part.type !== 'text' && part.type !== 'thinking') {
    yield contentPart(part);
    return;
  }
  const kind = part.type === 'text' ? 'text' : 'reasoning';
  const id = String(block);
  if (!open.has(block)) {
    yield { type: `${kind}-start`, id };
    yield { type: `${kind}-delta`, id, delta: part.text };
  }
  yield { type: `${kind}-end`, id, ...withMetadata(part) };
}

function streamOf(
  first: IteratorResult<Loose, undefined>,
  parts: AsyncGenerator<Loose, undefined>,
): ReadableStream<Loose> {
  let next: Promise<IteratorResult<Loose, undefined>> | undefined = Promise.resolve(first);
  return new ReadableStream<Loose>({
    async pull(controller) {
      try {
        const { done, value } = await (next ?? parts.next());
        next = undefined;
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.enqueue({ type: 'error', error });
        controller.close();
      }
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}
