/** Keeps long conversations within the context window: older messages are summarised in the request, not in the history. */

import type { TokenCounter } from '../../context-window/token-counter.js';
import { meterFor } from '../../context-window/token-meter.js';
import {
  AlliumError,
  type Context,
  defineMiddleware,
  defineState,
  type Message,
  type Middleware,
  type Model,
  type ModelContext,
  modelName,
} from '../../index.js';
import {
  type Fields,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  type Settings,
} from '../../kit/index.js';
import { Compactor, type Memory } from './compactor.js';
import { isContextOverflow } from './overflow.js';
import { type CompactionState, compactionCells } from './state.js';
import { EXISTING_SUMMARY_SUFFIX, SUMMARY_PREFIX, SUMMARY_PROMPT } from './summary.js';

export type { TokenCounter } from '../../context-window/token-counter.js';
export type { CompactionState } from './state.js';

export const OPTIONS = {
  /** Writes the summaries; a cheap one will do. */
  summaryModel: kinds.required(kinds.model<Model>()),
  /** Compact a request that has this many tokens: an integer ≥ 1. Leave room for the answer. Give this or `fraction`. */
  maxTokens: kinds.integer(1),
  /** Compact a request that fills this part of the context window: a number above 0, up to 1. Give this or `maxTokens`. */
  fraction: kinds.kind<number>(
    'a number above 0, up to 1',
    (value) => typeof value === 'number' && value > 0 && value <= 1,
    { schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 } },
  ),
  /** Tokens of the context window that `fraction` is a part of: an integer ≥ 1. @default what the model says of itself */
  windowTokens: kinds.integer(1),
  /** Tokens of the latest messages that are never summarised: an integer ≥ 0. If it is not below `maxTokens`, half of that. @default 8000 */
  keepTailTokens: kinds.withDefault(kinds.integer(0), 8000),
  /** The longest summary to ask for, in tokens: an integer ≥ 1. @default 15 % of what is summarised, from 1024 to 4096 */
  maxSummaryTokens: kinds.integer(1),
  /** Summarise only if at least this many messages would go: an integer ≥ 1. @default 4 */
  minMessages: kinds.withDefault(kinds.integer(1), 4),
  /** Show the summariser only the length of results over 120 characters. @default true */
  pruneToolOutputs: kinds.withDefault(kinds.flag, true),
  /**
   * The most of the conversation that the summariser is given, in tokens: an integer ≥ 1. Beyond that, the oldest
   * messages are left out. @default all that is to be summarised
   */
  maxSummaryInputTokens: kinds.integer(1),
  /** Names of tools whose calls and results are never summarised, but stay as they are. @default none */
  keepTools: kinds.withDefault(kinds.names, []),
  /** Stands before the summary in the request. @default says that this is a summary and what follows it */
  summaryPrefix: kinds.withDefault(kinds.nonEmptyText, SUMMARY_PREFIX),
  /** The summariser's system prompt. @default one with headings from Goal to Remaining */
  summaryPrompt: kinds.withDefault(kinds.nonEmptyText, SUMMARY_PROMPT),
  /** Added to the prompt when there is already a summary to merge with. @default asks to merge the two */
  existingSummarySuffix: kinds.withDefault(kinds.text, EXISTING_SUMMARY_SUFFIX),
  /** Counts the tokens of a text. @default `gpt-tokenizer` or `tokenx` if installed, else an estimate */
  tokenCounter: kinds.func<TokenCounter>(),
  ...named('compaction'),
} satisfies Fields;

export interface CompactionOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

export interface Compaction extends Middleware {
  /**
   * The summary of the session that the hook runs in, with the ids of the messages it stands for, as far as the run has
   * read them.
   */
  stateOf(ctx: Context): CompactionState;
}

/**
 * Summarises the older part of a request once it reaches `maxTokens`. The history keeps every message; the summary
 * stays with the session.
 *
 * @example
 * new Agent({ model, middleware: [compaction({ summaryModel, maxTokens: 2000, keepTailTokens: 500 })] });
 */
export function compaction(options: CompactionOptions): Compaction {
  const settings = readOptions('compaction', OPTIONS, options);
  checkSize(settings);
  const { summaryModel, tokenCounter, name, madeWith } = settings;
  const compactor = compactorOf(settings);
  const meter = meterFor(tokenCounter);
  const cells = compactionCells();
  /** What the request of a turn was made from. Calls that middleware make for themselves have none. */
  const asked = defineState<Asked | undefined>({ name: 'asked', scope: 'call', initial: undefined });
  /** From a turn that was too long to its restart: what its first try wrote was dropped. */
  const again = new WeakMap<readonly Message[], Again>();

  async function transformContext(
    messages: readonly Message[],
    ctx: ModelContext,
  ): Promise<readonly Message[]> {
    const kept = takeAgain(again, ctx);
    const before = kept ?? memoryOf(ctx);
    const forced = kept !== undefined;
    ctx.state.set(asked, { messages, forced });
    const after = await compactor.round(messages, ctx, await meter(), before, forced);
    if (forced || after !== before) remember(ctx, after);
    return compactor.view(messages, after.summary, ctx);
  }

  /** Writes only what has changed. */
  function remember(ctx: Context, after: Memory): void {
    if (after.summary !== ctx.state.get(cells.summary)) ctx.state.set(cells.summary, after.summary);
    if (after.progress !== ctx.state.get(cells.progress)) ctx.state.set(cells.progress, after.progress);
  }

  function memoryOf(ctx: Context): Memory {
    return { summary: ctx.state.get(cells.summary), progress: ctx.state.get(cells.progress) };
  }

  return {
    ...defineMiddleware({
      name,
      madeWith,
      state: [cells.summary, cells.progress, asked],
      seams: ['model'],
      extraLlmCalls: () => [summaryModel],
      enoughHistory: (latest, { state }) =>
        compactor.isEnough(latest, {
          summary: state.get(cells.summary),
          progress: state.get(cells.progress),
        }),
      transformContext,
      async compact(ctx) {
        remember(ctx, await compactor.round(ctx.messages, ctx, await meter(), memoryOf(ctx), true));
      },
      beforeModel(ctx) {
        if (ctx.state.get(asked)) compactor.sending(ctx);
      },
      async onError(ctx, error) {
        const request = ctx.state.get(asked);
        // Once per turn: a request that is too long after a forced round stays too long.
        if (!request || request.forced || !isContextOverflow(error)) return undefined;
        const memory = memoryOf(ctx);
        if (!compactor.canShrink(request.messages, ctx as ModelContext, await meter(), memory))
          return undefined;
        again.set(ctx.history, { runId: ctx.runId, turn: ctx.turn, memory });
        return 'restart';
      },
    }),
    stateOf: (ctx) => compactor.whole(ctx.history, ctx.state.get(cells.summary)),
  };
}

function compactorOf({ keepTailTokens, pruneToolOutputs, ...settings }: Settings<typeof OPTIONS>): Compactor {
  const sizeFor = ({ model }: Pick<ModelContext, 'model'>) => {
    const { maxTokens = windowOf(model, settings.windowTokens) * settings.fraction! } = settings;
    const size = Math.max(1, Math.floor(maxTokens));
    return { maxTokens: size, tailTokens: keepTailTokens >= size ? Math.floor(size / 2) : keepTailTokens };
  };
  return new Compactor({ ...settings, sizeFor, prune: pruneToolOutputs });
}

function checkSize({ maxTokens, fraction, windowTokens }: Settings<typeof OPTIONS>): void {
  if (maxTokens === undefined && fraction === undefined)
    throw invalidOption('maxTokens', 'an integer ≥ 1, unless there is a `fraction`', maxTokens);
  if (maxTokens !== undefined && fraction !== undefined)
    throw invalidOption('fraction', 'left out where there is `maxTokens`', fraction);
  if (windowTokens !== undefined && fraction === undefined)
    throw invalidOption('windowTokens', 'left out where there is no `fraction`', windowTokens);
}

function windowOf(model: Model, given = model.contextWindow): number {
  if (given === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      `compaction({ fraction }) needs the context window of ${modelName(model)}, which the model does not state. Pass \`windowTokens\`.`,
      { data: { option: 'windowTokens', model: modelName(model) } },
    );
  return given;
}

interface Asked {
  readonly messages: readonly Message[];
  readonly forced: boolean;
}

interface Again {
  readonly runId: string;
  readonly turn: number;
  readonly memory: Memory;
}

/** For this turn only: an outer layer may have swallowed the restart, so that the turn never started again. */
function takeAgain(again: WeakMap<readonly Message[], Again>, ctx: Context): Memory | undefined {
  const kept = again.get(ctx.history);
  if (!kept) return undefined;
  again.delete(ctx.history);
  return kept.runId === ctx.runId && kept.turn === ctx.turn ? kept.memory : undefined;
}
