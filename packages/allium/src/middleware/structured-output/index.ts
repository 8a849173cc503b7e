/** Makes the final answer of a run JSON that fits a schema. */

import {
  AlliumError,
  defineMiddleware,
  defineState,
  type JsonSchema,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  type RunResult,
  type StandardSchema,
  syntheticUserMessage,
  type TurnAction,
  type TurnContext,
  textOf,
  toolCallsOf,
} from '../../index.js';
import { jsonSchema } from '../../json-schema/index.js';
import {
  describeIssues,
  type Fields,
  isPlainObject,
  isRecord,
  isStandardSchema,
  jsonSchemaOf,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { cut } from '../../texts/cut.js';

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
   * How the model gets the schema. `auto` sends it as `settings.responseSchema` if the schema exposes its JSON Schema
   * or `toJsonSchema` makes it; `prompt` puts it at the end of the system prompt; `validate` does neither. @default
   * 'auto'
   */
  mode: kinds.withDefault(kinds.oneOf('auto', 'prompt', 'validate'), 'auto'),
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
}

/** Text of a rejected answer that an error message quotes at most. */
const QUOTED = 200;

/**
 * Validates final answers. An answer that fits is in `result.output` and `ctx.metadata.parsed`. For one that does
 * not, the model is told the exact errors and answers again, at most `maxRepairs` times.
 *
 * @example
 * const city = structuredOutput({ schema: z.object({ name: z.string(), people: z.number() }) });
 */
export function structuredOutput<Output>(options: StructuredOutputOptions<Output>): StructuredOutput<Output> {
  const { maxRepairs, mode, toJsonSchema, name, madeWith } = readOptions(
    'structuredOutput',
    OPTIONS,
    options,
  );
  const { schema: given } = options;
  const isRaw = !isStandardSchema(given);
  const schema = isRaw ? jsonSchema<Output>(given) : given;
  const responseSchema = shownSchema(schema, mode, toJsonSchema);
  const repairs = defineState({ name: 'repairs', scope: 'run', initial: 0 });

  return {
    ...defineMiddleware({
      name,
      madeWith,
      state: [repairs],
      ...(isRaw && {
        // Compiles the schema, so that a wrong one, or a missing ajv, is known before a model is paid.
        async beforeRun() {
          await schema['~standard'].validate(null);
        },
      }),
      // A rule and no layer: calls that other middleware make for themselves are not to follow this schema.
      ...(responseSchema && {
        transformSystemPrompt(prompt: string, ctx: ModelContext) {
          if (mode === 'prompt') return withSchema(prompt, responseSchema);
          ctx.settings = { ...ctx.settings, responseSchema };
          return prompt;
        },
      }),
      afterModelResponse(response, ctx) {
        return toolCallsOf(response).length > 0 ? undefined : judge(response, ctx);
      },
      // The journal has the answer but not what it was parsed to: after a crash in between it is parsed again.
      async onRunEnd(ctx) {
        const { message } = ctx;
        if (ctx.output !== undefined || !message || toolCallsOf(message).length > 0) return;
        const checked = await check(schema, message);
        if ('value' in checked) ctx.setOutput(checked.value);
      },
    }),
    outputOf: (result) => result.output as Output | undefined,
  };

  async function judge(response: ModelResponse, ctx: TurnContext): Promise<TurnAction | undefined> {
    const used = ctx.state.get(repairs);
    const checked = await check(schema, response);
    if ('value' in checked) {
      if (used > 0) ctx.state.set(repairs, 0);
      ctx.metadata.parsed = checked.value;
      ctx.setOutput(checked.value);
      return undefined;
    }
    if (used >= maxRepairs) throw invalidOutput(response, checked.problem, used);
    ctx.state.set(repairs, used + 1);
    const message = syntheticUserMessage(correction(checked.problem), { source: 'structured-output' });
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

type Checked<Output> = { readonly value: Output } | { readonly problem: string };

async function check<Output>(
  schema: StandardSchema<unknown, Output>,
  response: ModelResponse,
): Promise<Checked<Output>> {
  const parsed = parse(textOf(response));
  if ('problem' in parsed) {
    const cut = response.stopReason === 'length' ? ' It was cut off at the output limit: write less.' : '';
    return { problem: `${parsed.problem}${cut}` };
  }
  const result = await schema['~standard'].validate(parsed.value);
  return result.issues ? { problem: describeIssues(result.issues) } : { value: result.value };
}

const FENCE = /^```[\w-]*\r?\n([\s\S]*?)\r?\n?```$/;

/** The JSON of an answer. Models like to put it into a fence; text beside it is not tolerated. */
function parse(text: string): { value: unknown } | { problem: string } {
  const trimmed = text.trim();
  const json = FENCE.exec(trimmed)?.[1] ?? trimmed;
  if (json === '') return { problem: 'The answer is empty. Expected one JSON value.' };
  try {
    return { value: JSON.parse(json) };
  } catch (error) {
    return { problem: `The answer is not valid JSON: ${messageOf(error)}.` };
  }
}

function correction(problem: string): string {
  return `Your answer does not fit the expected format:\n${problem}\nAnswer again, with the corrected JSON and nothing else.`;
}

function invalidOutput(response: ModelResponse, problem: string, repairs: number): AlliumError {
  const text = textOf(response);
  const quoted = cut(text, QUOTED);
  const tries = repairs === 0 ? '' : ` after ${repairs} ${repairs === 1 ? 'repair' : 'repairs'}`;
  return new AlliumError(
    'OUTPUT_INVALID',
    `The final answer does not fit the schema${tries}:\n${problem}\nThe last answer was: ${quoted}`,
    { data: { text, problem, repairs } },
  );
}
