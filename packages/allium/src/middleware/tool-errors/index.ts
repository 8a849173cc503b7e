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
  checkFunction,
  checkNamed,
  describeValue,
  errorResult,
  invalidOption,
  messageOf,
  type NamedOptions,
} from '../../kit/index.js';

export interface ToolErrorsOptions extends NamedOptions {
  /**
   * Turns an error into text for the model. `hide` is applied to what it returns. @default name of the tool and
   * message, without the stack
   */
  readonly format?: (error: unknown, ctx: ToolContext) => string | Promise<string>;
  /** What to remove from the text: patterns, or texts to match literally. @default nothing */
  readonly hide?: readonly (RegExp | string)[];
}

const HIDDEN = '[hidden]';

/**
 * Turns what a tool throws into an error result in your words. `hide` also cleans error results that a tool returned
 * itself. Stops, suspensions and aborts pass unchanged.
 *
 * @example
 * new Agent({ model, tools: [query], middleware: [toolErrors({ hide: [/postgres:\S+/] })] });
 */
export function toolErrors(options: ToolErrorsOptions = {}): Middleware {
  checkNamed('toolErrors', options, ['format', 'hide']);
  const { format = worded, hide = [] } = options;
  checkFunction('format', format);
  const patterns = patternsOf(hide);
  const cleaned = (text: string) => patterns.reduce((rest, pattern) => rest.replace(pattern, HIDDEN), text);
  return defineMiddleware({
    name: options.name ?? 'tool-errors',
    traits: ['settles'],
    async wrapTool(ctx, next) {
      let result: ToolResult;
      try {
        result = await next();
      } catch (error) {
        if (isControl(error) || ctx.signal.aborted) throw error;
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

function patternsOf(hide: unknown): readonly RegExp[] {
  const fine = (one: unknown) => one instanceof RegExp || (typeof one === 'string' && one !== '');
  if (!Array.isArray(hide) || !hide.every(fine))
    throw invalidOption('hide', 'a list of regular expressions and non-empty texts', hide);
  // Every occurrence is to go, whatever flags the pattern came with; and what is shared must keep no position.
  return hide.map((one: RegExp | string) =>
    typeof one === 'string'
      ? new RegExp(one.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'g')
      : new RegExp(one.source, `${one.flags.replace(/[gy]/g, '')}g`),
  );
}

/** Some messages carry a stack: its lines are of no use to a model. */
const STACK_LINES = /(?:\r?\n[ \t]+at [^\n]*)+/g;

function worded(error: unknown, { toolCall }: ToolContext): string {
  return `"${toolCall.name}" failed: ${messageOf(error).replace(STACK_LINES, '')}`;
}

function cleanedPart(part: ToolContent, cleaned: (text: string) => string): ToolContent {
  if (part.type !== 'text') return part;
  const text = cleaned(part.text);
  return text === part.text ? part : { ...part, text };
}
