/** Writes a line for every run, model call and tool call. */

import {
  defineMiddleware,
  isControl,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  modelName,
  monotonic,
  type RunContext,
  type RunResult,
  systemClock,
  type ToolContext,
  type ToolResult,
  terminalText,
  textOf,
  toolCallsOf,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
  safeStackFrames,
} from '../../kit/index.js';

const LEVELS = ['error', 'info', 'debug'] as const;

/** Stdout is for a program's output. Looked up for each line: somebody may have replaced it. */
const toStderr = (line: string): void => globalThis.console.error(line);
const STDERR = { error: toStderr, info: toStderr, debug: toStderr };

export const OPTIONS = {
  /** `error`: failures only; `info`: also one line per call; `debug`: also arguments and text. @default 'info' */
  level: kinds.withDefault(kinds.oneOf(...LEVELS), 'info'),
  /**
   * Where lines go: anything shaped like the console. A promise it returns is awaited. If it throws, that is noted in
   * `result.changes`. @default stderr, through `console.error` at every level
   */
  console: kinds.withDefault(kinds.methods<Pick<Console, 'error' | 'info' | 'debug'>>(...LEVELS), STDERR),
  /** Where the time comes from. @default the system's */
  clock: kinds.withDefault(kinds.clock('now'), systemClock),
  ...named('console-logger'),
} satisfies Fields;

export interface ConsoleLoggerOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Logs what a run does. It is declared a sink, so no line contains what guards removed.
 *
 * @example
 * new Agent({ model, tools: [add], middleware: [consoleLogger({ level: 'debug' })] });
 */
export function consoleLogger(options: ConsoleLoggerOptions = {}): Middleware {
  const { level, console: out, clock, name, madeWith } = readOptions('consoleLogger', OPTIONS, options);
  const write = async (at: (typeof LEVELS)[number], ctx: AnyContext, line: string): Promise<void> => {
    if (LEVELS.indexOf(at) > LEVELS.indexOf(level)) return;
    const run = `[${ctx.runId}]`;
    // Every line begins with the run, and continuation lines are indented: text of a model can't pass for a line of
    // ours.
    await out[at](`${run} ${terminalText(line).replaceAll('\n', `\n${run}   `)}`);
  };
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    sink: true,
    traits: ['exports'],
    // A log that can't be written doesn't end a run.
    onFail: 'open',
    async process(ctx, next) {
      const started = monotonic(clock);
      let result: unknown;
      try {
        result = await next();
      } catch (error) {
        // Stops, suspensions and aborts are ends, not failures.
        if (isControl(error)) await write('info', ctx, `${subject(ctx)}: ended: ${error.message}`);
        else
          await write(
            'error',
            ctx,
            `${subject(ctx)}: failed: ${safeErrorMessage(error, ctx)}${frames(ctx, error)}`,
          );
        throw error;
      }
      const took = monotonic(clock) - started;
      await write('info', ctx, `${subject(ctx)}: ${outcome(ctx, result)}, ${took} ms`);
      const more = content(ctx, result);
      if (more) await write('debug', ctx, more);
      return result;
    },
    async afterToolCall(ctx) {
      // Calls that were refused never reach the tool layers.
      if (ctx.blocked) await write('info', ctx, `${subject(ctx)}: refused`);
    },
  });
}

/** Where a tool failed. If a model or run fails, the caller gets the error. */
function frames(ctx: AnyContext, error: unknown): string {
  return ctx.seam === 'tool' ? safeStackFrames(error, ctx) : '';
}

type AnyContext = RunContext | ModelContext | ToolContext;

function subject(ctx: AnyContext): string {
  if (ctx.seam === 'run') return 'run';
  return `turn ${ctx.turn}: ${ctx.seam === 'model' ? modelName(ctx.model) : ctx.toolCall.name}`;
}

function outcome(ctx: AnyContext, result: unknown): string {
  if (ctx.seam === 'run') {
    const { status, turns, usage } = result as RunResult;
    return `${status}, ${turns} turns, ${usage.totalTokens} tokens`;
  }
  if (ctx.seam === 'tool') return (result as ToolResult).isError ? 'error result' : 'ok';
  const calls = toolCallsOf(result as ModelResponse).map(({ name }) => name);
  return calls.length > 0 ? `calls ${calls.join(', ')}` : 'answers';
}

function content(ctx: AnyContext, result: unknown): string | undefined {
  if (ctx.seam === 'run') return undefined;
  if (ctx.seam === 'tool') return `  ${ctx.toolCall.arguments} → ${textOf(result as ToolResult)}`;
  const text = textOf(result as ModelResponse);
  return text === '' ? undefined : `  ${text}`;
}
