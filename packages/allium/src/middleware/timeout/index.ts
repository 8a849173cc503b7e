/** Cancels model and tool calls that take too long. */

import {
  AlliumError,
  type Clock,
  defineMiddleware,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  modelName,
  type StreamTransform,
  type ToolContext,
} from '../../index.js';
import {
  allowModelTime,
  type Fields,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { Alarm } from './alarm.js';

const MS = kinds.number(1, Number.POSITIVE_INFINITY);

export const OPTIONS = {
  /** Milliseconds a model call may take, everything further in included. */
  modelMs: MS,
  /** Milliseconds a tool call may take, everything further in included. */
  toolMs: MS,
  /** Milliseconds a model may take, from being asked, until the first piece of its answer. */
  firstTokenMs: MS,
  /** Milliseconds that may pass between two pieces of an answer. */
  idleMs: MS,
  /** Milliseconds by tool name, instead of `toolMs`; `Infinity` for none. @default {} */
  tools: kinds.withDefault(kinds.recordOf(MS, 'an object of milliseconds by tool name'), {}),
  /** Where the time comes from. @default the agent's */
  clock: kinds.clock(),
  ...named('timeout'),
} satisfies Fields;

export interface TimeoutOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const LIMITS = ['modelMs', 'toolMs', 'firstTokenMs', 'idleMs'] as const;

/**
 * Cancels calls that take too long through their signal, and throws `MODEL_TIMEOUT` or `TOOL_TIMEOUT`, which `retry`
 * treats as transient. Time spent waiting for a slow consumer or a human does not count.
 *
 * @example
 * new Agent({ model, tools: [crawl], middleware: [timeout({ modelMs: 60_000, toolMs: 10 })] });
 */
export function timeout(options: TimeoutOptions): Middleware {
  const settings = readOptions('timeout', OPTIONS, options);
  const { modelMs, toolMs, firstTokenMs, idleMs, tools, clock, name, madeWith } = settings;
  const perTool = new Map(Object.entries(tools));
  if (LIMITS.every((limit) => settings[limit] === undefined) && perTool.size === 0)
    throw invalidOption('options', `an object with at least one of ${LIMITS.join(', ')} or tools`, options);
  const watchesParts = firstTokenMs !== undefined || idleMs !== undefined;
  const watchesModel = modelMs !== undefined || watchesParts;
  const watchesTools = toolMs !== undefined || perTool.size > 0;

  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    mentions: [...perTool.keys()],
    traits: ['times-out', 'pauses'],
    ...(watchesModel &&
      ({
        wrapModel(ctx, next) {
          const total = alarm(ctx, clock);
          // If this allows more time than the agent gives a model by default, that default must not cut it off.
          allowModelTime(ctx, { totalMs: modelMs, idleMs: Math.max(firstTokenMs ?? 0, idleMs ?? 0) });
          if (!watchesParts) return within(ctx, total, modelMs, modelTooSlow, next);
          const gap = alarm(ctx, clock);
          return new Promise<ModelResponse>((resolve, reject) => {
            const over = (): void => {
              total.clear();
              gap.clear();
            };
            const late = (limit: (typeof LIMITS)[number], what: string) => (ms: number) => {
              over();
              reject(modelTimeout(ctx, limit, what, ms));
            };
            ctx.transform(() => watchParts(gap, firstTokenMs, idleMs, late));
            total.set(modelMs, (ms) => {
              over();
              reject(modelTooSlow(ctx, ms));
            });
            settle(next(), over, resolve, reject);
          });
        },
      } satisfies Partial<Middleware>)),
    ...(watchesTools &&
      ({
        wrapTool(ctx, next) {
          const ms = perTool.get(ctx.toolCall.name) ?? toolMs;
          if (ms === undefined || ms === Number.POSITIVE_INFINITY) return next();
          return within(ctx, alarm(ctx, clock), ms, toolTooSlow, next);
        },
      } satisfies Partial<Middleware>)),
  });
}

/** Makes the call, and waits for it no longer than `ms`. */
function within<Call, Result>(
  ctx: Call,
  total: Alarm,
  ms: number | undefined,
  tooSlow: (ctx: Call, ms: number) => AlliumError,
  next: () => Promise<Result>,
): Promise<Result> {
  return new Promise<Result>((resolve, reject) => {
    total.set(ms, (limit) => reject(tooSlow(ctx, limit)));
    settle(next(), () => total.clear(), resolve, reject);
  });
}

/** Passes on the outcome of `work` once `over` is done. Cheaper than `finally`, which makes three promises. */
function settle<T>(
  work: Promise<T>,
  over: () => void,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): void {
  work.then(
    (value) => {
      over();
      resolve(value);
    },
    (error) => {
      over();
      reject(error);
    },
  );
}

/** Counts active time: a model whose consumer is behind isn't slow, and neither is a tool that asks a human. */
function alarm(ctx: ModelContext | ToolContext, clock: Clock | undefined): Alarm {
  return new Alarm(clock ?? ctx.agent.clock, ctx);
}

/** Passes every piece on unchanged. Made when a stream begins, so waits further in are not part of the first gap. */
function watchParts(
  gap: Alarm,
  firstTokenMs: number | undefined,
  idleMs: number | undefined,
  late: (limit: 'firstTokenMs' | 'idleMs', what: string) => (ms: number) => void,
): StreamTransform {
  let begun = false;
  gap.set(firstTokenMs, late('firstTokenMs', 'sent nothing within'));
  const seen = (): void => {
    if (begun) gap.restart();
    else gap.set(idleMs, late('idleMs', 'stopped in the middle of its answer for'));
    begun = true;
  };
  return {
    part(part, emit) {
      seen();
      emit(part);
    },
    end: seen,
  };
}

function modelTimeout(ctx: ModelContext, limit: string, what: string, ms: number): AlliumError {
  const model = modelName(ctx.model);
  return new AlliumError('MODEL_TIMEOUT', `${model} ${what} ${ms} ms.`, { data: { model, limit, ms } });
}

function modelTooSlow(ctx: ModelContext, ms: number): AlliumError {
  return modelTimeout(ctx, 'modelMs', 'did not finish within', ms);
}

function toolTooSlow({ toolCall }: ToolContext, ms: number): AlliumError {
  const tool = toolCall.name;
  return new AlliumError('TOOL_TIMEOUT', `"${tool}" did not finish within ${ms} ms.`, { data: { tool, ms } });
}
