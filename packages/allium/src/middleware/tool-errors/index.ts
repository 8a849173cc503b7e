/** Decides what the model is told when a tool fails. */

import {
  AlliumError,
  defineMiddleware,
  isControl,
  type Middleware,
  type ToolContent,
  type ToolContext,
  type ToolResult,
} from '../../index.js';
import {
  describeValue,
  errorResult,
  type Fields,
  isRunAborted,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

const PATTERN = kinds.kind<RegExp | string>(
  'a regular expression or non-empty text',
  (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
  { schema: kinds.nonEmptyText.schema! },
);

export const OPTIONS = {
  /**
   * Turns an error into text for the model. `hide` is applied to what it returns. @default name of the tool and
   * message, without the stack
   */
  format: kinds.withDefault(
    kinds.func<(error: unknown, ctx: ToolContext) => string | Promise<string>>(),
    worded,
  ),
  /**
   * What to remove from the text: patterns, or texts to match literally. Every match becomes `[hidden]`.
   * @default nothing
   */
  hide: kinds.withDefault(
    kinds.secret(kinds.listOf(PATTERN, 'a list of regular expressions and non-empty texts')),
    [],
  ),
  ...named('tool-errors'),
} satisfies Fields;

export interface ToolErrorsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const HIDDEN = '[hidden]';

/**
 * Turns what a tool throws into an error result in your words. `hide` also cleans error results that a tool returned
 * itself. Stops, suspensions and aborts pass unchanged.
 *
 * @example
 * new Agent({ model, tools: [query], middleware: [toolErrors({ hide: [/postgres:\S+/] })] });
 */
export function toolErrors(options: ToolErrorsOptions = {}): Middleware {
  const { format, hide, name, madeWith } = readOptions('toolErrors', OPTIONS, options);
  const patterns = patternsOf(hide);
  const cleaned = (text: string) => patterns.reduce((rest, pattern) => rest.replace(pattern, HIDDEN), text);
  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.format ? undefined : 0,
    traits: ['settles'],
    async wrapTool(ctx, next) {
      let result: ToolResult;
      try {
        result = await next();
      } catch (error) {
        if (isControl(error) || isRunAborted(ctx)) throw error;
        const text: unknown = await format(error, ctx);
        if (typeof text !== 'string')
          throw new AlliumError(
            'INVALID_HOOK_RESULT',
            `\`format\` of toolErrors() returned ${describeValue(text)}. Return the text for the model.`,
            { cause: error },
          );
        return errorResult(cleaned(text));
      }
      if (!result.isError || patterns.length === 0) return result;
      const content = result.content.map((part) => cleanedPart(part, cleaned));
      return content.every((part, i) => part === result.content[i]) ? result : { ...result, content };
    },
  });
}

function patternsOf(hide: readonly (RegExp | string)[]): readonly RegExp[] {
  // Every occurrence is removed, whatever flags the pattern has, and a shared pattern must keep no position.
  return hide.map((one) =>
    typeof one === 'string'
      ? new RegExp(one.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'g')
      : new RegExp(one.source, `${one.flags.replace(/[gy]/g, '')}g`),
  );
}

/** Some messages contain a stack, whose lines are of no use to a model. */
const STACK_LINES = /(?:\r?\n[ \t]+at [^\n]*)+/g;

function worded(error: unknown, { toolCall }: ToolContext): string {
  return `"${toolCall.name}" failed: ${messageOf(error).replace(STACK_LINES, '')}`;
}

function cleanedPart(part: ToolContent, cleaned: (text: string) => string): ToolContent {
  if (part.type !== 'text') return part;
  const text = cleaned(part.text);
  return text === part.text ? part : { ...part, text };
}
