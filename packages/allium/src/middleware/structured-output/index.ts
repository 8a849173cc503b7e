/** Makes the final answer of a run JSON that fits a schema. */

import {
  defineMiddleware,
  defineState,
  type JsonSchema,
  type Middleware,
  type Model,
  type ModelContext,
  type ModelResponse,
  type RunResult,
  type RunStream,
  type StandardSchema,
  syntheticUserMessage,
  type TurnAction,
  type TurnContext,
  toolCallsOf,
} from '../../index.js';
import { jsonSchema } from '../../json-schema/index.js';
import {
  type Fields,
  isPlainObject,
  isRecord,
  isStandardSchema,
  jsonSchemaOf,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { check, invalidOutput } from './check.js';
import {
  answerAsText,
  asObject,
  demanding,
  finalAnswerTool,
  undemanding,
  unwrappedText,
} from './final-answer.js';

// biome-ignore lint/suspicious/noExplicitAny: what goes in is text of a model; only what comes out is typed.
const SCHEMA = kinds.kind<StandardSchema<any, unknown> | JsonSchema>(
  'a Standard Schema (zod, valibot, arktype, …) or a JSON Schema object',
  (value) => isStandardSchema(value) || (isRecord(value) && isPlainObject(value)),
  { schema: { type: 'object' } },
);

export const OPTIONS = {
  /**
   * The schema of the answer: any Standard Schema, or a raw JSON Schema. A raw one is checked by `ajv`:
   * install it beside this package.
   */
  schema: kinds.required(SCHEMA),
  /** How often the model is told what is wrong before the run fails: an integer from 0 to 20. @default 2 */
  maxRepairs: kinds.withDefault(kinds.integer(0, 20), 2),
  /**
   * How the model gets the schema. `json` sends it as `settings.responseSchema`; `tool` offers a tool that takes the
   * final answer; `prompt` puts it at the end of the system prompt; `validate` does none of these. `auto` is `tool` for
   * models that say they have no JSON mode (or none beside tools, if there are any), otherwise `json`, or `validate` if
   * the schema has no JSON Schema. @default 'auto'
   */
  mode: kinds.withDefault(kinds.oneOf('auto', 'json', 'tool', 'prompt', 'validate'), 'auto'),
  /** What the tool is called that takes the final answer. @default 'final_answer' */
  toolName: kinds.withDefault(
    kinds.kind<string>(
      '1 to 64 letters, digits, "_" or "-"',
      (name) => typeof name === 'string' && /^[\w-]{1,64}$/.test(name),
      { schema: { type: 'string', pattern: '^[\\w-]{1,64}$' } },
    ),
    'final_answer',
  ),
  /** Makes the JSON Schema if the schema does not expose one. */
  toJsonSchema: kinds.func<(schema: never) => object>(),
  ...named('structured-output'),
} satisfies Fields;

export interface StructuredOutputOptions<Output = unknown> extends OptionsOf<typeof OPTIONS>, NamedOptions {
  // biome-ignore lint/suspicious/noExplicitAny: what goes in is text of a model; only what comes out is typed.
  readonly schema: StandardSchema<any, Output> | JsonSchema;
}

export interface StructuredOutput<Output> extends Middleware {
  /** The output of a run with this middleware, typed; undefined if the run gave no final answer. */
  outputOf(result: RunResult): Output | undefined;
  /** `stream.partials` of a run with this middleware, typed. */
  partialsOf(stream: RunStream): AsyncIterable<DeepPartial<Output>>;
}

/** A value that is still being written: anything may be missing, at any depth. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? DeepPartial<Item>[]
  : T extends object
    ? { [Key in keyof T]?: DeepPartial<T[Key]> }
    : T;

/**
 * Validates final answers. An answer that fits is in `result.output` and `ctx.metadata.parsed`. For one that does
 * not, the model is told the exact errors and answers again, at most `maxRepairs` times.
 *
 * @example
 * const city = structuredOutput({ schema: z.object({ name: z.string(), people: z.number() }) });
 */
export function structuredOutput<Output>(options: StructuredOutputOptions<Output>): StructuredOutput<Output> {
  const { maxRepairs, mode, toolName, toJsonSchema, name, madeWith } = readOptions(
    'structuredOutput',
    OPTIONS,
    options,
  );
  const { schema: given } = options;
  const isRaw = !isStandardSchema(given);
  const schema = isRaw ? jsonSchema<Output>(given) : given;
  const shown = shownSchema(schema, mode, toJsonSchema);
  const final = shown && usesTool(mode) ? finalAnswerTool(toolName, shown) : undefined;
  const asked = shown && mode !== 'prompt' ? asObject(shown) : undefined;
  const wraps = asked !== shown && asked !== undefined;
  const repairs = defineState({ name: 'repairs', scope: 'run', initial: 0 });

  return {
    ...defineMiddleware({
      name,
      madeWith,
      looksBack: 0,
      state: [repairs],
      ...(isRaw && {
        // Compiles the schema, so that a wrong one, or a missing ajv, is noticed before a model is paid.
        async beforeRun() {
          await schema['~standard'].validate(null);
        },
      }),
      // A rule, so that every layer sees what is asked, and calls that middleware make for themselves don't ask for
      // it.
      ...(shown && {
        transformSystemPrompt(prompt: string, ctx: ModelContext) {
          if (!asked) return withSchema(prompt, shown);
          ask(ctx, asked);
          return prompt;
        },
      }),
      ...(asked &&
        (final || wraps) && {
          beforeModel(ctx: ModelContext) {
            if (ctx.caller !== undefined) return;
            // An outer layer may have chosen another model.
            ask(ctx, asked);
            if (final && ctx.tools.includes(final)) ctx.transform(() => answerAsText(toolName, wraps));
            else if (wraps) ctx.transform(unwrappedText);
          },
        }),
      afterModelResponse(response, ctx) {
        // An answer that a content filter ended is no final answer: the run ends with it.
        if (toolCallsOf(response).length > 0 || response.stopReason === 'content-filter') return undefined;
        return judge(response, ctx);
      },
      // The journal has the answer but not the parsed value: after a crash in between, it is parsed again.
      async onRunEnd(ctx) {
        const { message } = ctx;
        if (ctx.output !== undefined || !message || toolCallsOf(message).length > 0) return;
        const checked = await check(schema, message, wraps, ctx);
        if ('value' in checked) ctx.setOutput(checked.value);
      },
    }),
    outputOf: (result) => result.output as Output | undefined,
    partialsOf: (stream) => stream.partials as AsyncIterable<DeepPartial<Output>>,
  };

  /** Asks for the schema in the way that suits the model of this call. */
  function ask(ctx: ModelContext, asked: JsonSchema): void {
    const { responseSchema, ...settings } = ctx.settings;
    const isAsked = final !== undefined && ctx.tools.includes(final);
    const others = ctx.tools.length > (isAsked ? 1 : 0);
    const byTool = final && (mode === 'tool' || lacksJsonMode(ctx.model, others));
    if (!byTool) {
      if (isAsked) ctx.tools = ctx.tools.filter((tool) => tool !== final);
      const plain = isAsked ? undemanding(settings) : settings;
      if (responseSchema !== asked) ctx.settings = { ...plain, responseSchema: asked };
    } else if (!isAsked) {
      ctx.tools = [...ctx.tools, final];
      ctx.settings = demanding(settings, toolName);
    } else if (settings.toolChoice === 'none') {
      // An outer layer wants an answer and no more calls. Here, the answer is a call.
      ctx.settings = demanding(settings, toolName);
    }
  }

  async function judge(response: ModelResponse, ctx: TurnContext): Promise<TurnAction | undefined> {
    const used = ctx.state.get(repairs);
    const checked = await check(schema, response, wraps, ctx);
    if ('value' in checked) {
      if (used > 0) ctx.state.set(repairs, 0);
      ctx.metadata.parsed = checked.value;
      ctx.setOutput(checked.value);
      return undefined;
    }
    if (used >= maxRepairs) throw invalidOutput(response, checked.problem, used);
    ctx.state.set(repairs, used + 1);
    const again = correction(checked.problem, mode === 'tool' ? toolName : undefined);
    const message = syntheticUserMessage(again, { source: 'structured-output' });
    return { injectMessages: [message], decision: 'loop_to_model' };
  }
}

function shownSchema(
  schema: StandardSchema,
  mode: string,
  toJsonSchema: StructuredOutputOptions['toJsonSchema'],
): JsonSchema | undefined {
  if (mode === 'validate') return undefined;
  // Without a JSON Schema, `auto` still validates; `prompt` would have nothing to say.
  if (mode === 'auto' && !toJsonSchema && !schema['~standard'].jsonSchema) return undefined;
  return jsonSchemaOf('structuredOutput()', schema, toJsonSchema);
}

function withSchema(prompt: string, schema: JsonSchema): string {
  const task = `Give your final answer as JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
  return prompt === '' ? task : `${prompt}\n\n${task}`;
}

function correction(problem: string, toolName: string | undefined): string {
  const how = toolName ? `by calling "${toolName}"` : 'with the corrected JSON and nothing else';
  return `Your answer does not fit the expected format:\n${problem}\nAnswer again, ${how}.`;
}

function lacksJsonMode({ jsonMode }: Model, withTools: boolean): boolean {
  return jsonMode === false || (jsonMode === 'without-tools' && withTools);
}

function usesTool(mode: string): boolean {
  return mode === 'auto' || mode === 'tool';
}
