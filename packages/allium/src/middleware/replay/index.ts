/** Answers model and tool calls from a cassette that `record` wrote. */

import { CLEANING, cleaning, withIds } from '../../cassette/clean.js';
import type { Entry, ModelEntry, Question, ToolEntry } from '../../cassette/format.js';
import { type Asked, askedModel, askedTool } from '../../cassette/questions.js';
import { type Context, defineMiddleware, type Middleware } from '../../index.js';
import {
  errorResult,
  type Fields,
  kinds,
  type NamedOptions,
  named,
  nextWithTool,
  type OptionsOf,
  readOptions,
  throwFeedback,
} from '../../kit/index.js';
import { Library, type Replayed, SOURCE } from './library.js';
import { miss } from './miss.js';
import { type Playback, playbackModel, playbackTool } from './playback.js';
import { holdGuards, type Refused, saying } from './verdicts.js';

export const OPTIONS = {
  /** The cassette: a file, or its lines. It is read at the first call. */
  from: kinds.required(SOURCE),
  /** What happens to a call that was not recorded: the run fails, or the call is made. @default 'error' */
  onMiss: kinds.withDefault(kinds.oneOf('error', 'passthrough'), 'error'),
  ...CLEANING,
  ...named('replay'),
} satisfies Fields;

export interface ReplayOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** A run in progress. */
interface ReplayedRun extends Replayed {
  /** What tools asked people, by call and question. */
  readonly questions: Map<string, Question[]>;
  readonly refused: Refused;
  /** Why the first call found no recording: a miss or a damaged cassette. No outer layer can hide it. */
  failure: { readonly error: unknown } | undefined;
}

/**
 * Replays a recorded run: neither models nor tools are called. Answers stream in the pieces they came in and pass
 * guards, limits and every layer like live ones. Put it where `record` stood.
 *
 * @example
 * new Agent({ model, tools: [weather], middleware: [replay({ from: 'weather.jsonl' })] });
 */
export function replay(options: ReplayOptions): Middleware {
  const { from, onMiss, redact, normalise, name, madeWith } = readOptions('replay', OPTIONS, options);
  const clean = cleaning({ redact, normalise });
  const runs = new Map<string, ReplayedRun>();
  let opened: Library | undefined;
  const library = (): Library => {
    opened ??= new Library(from);
    return opened;
  };
  const runOf = ({ runId }: Context): ReplayedRun => {
    let run = runs.get(runId);
    if (!run) {
      run = { taken: new Set(), follows: [], questions: new Map(), refused: new Map(), failure: undefined };
      runs.set(runId, run);
    }
    return run;
  };
  /** The recording for a call, if there is one. */
  const find = <E extends Entry>(asked: Asked, ctx: Context): E | undefined => {
    const run = runOf(ctx);
    if (run.failure) throw run.failure.error;
    return loudly(run, () => library().take(asked, run)) as E | undefined;
  };
  const missing = (asked: Asked, ctx: Context): never =>
    loudly(runOf(ctx), () => {
      throw miss(asked, library());
    });
  return defineMiddleware({
    name,
    madeWith,
    // It looks up what `record` wrote, which gets the guarded view.
    sink: true,
    traits: ['replays'],
    async wrapRun(ctx, next) {
      let resumable = false;
      try {
        const result = await next();
        // A tool call without a recording became an error result for the model, which nobody would notice.
        const { failure } = runOf(ctx);
        if (failure) throw failure.error;
        resumable = result.status === 'suspended';
        return result;
      } finally {
        if (!resumable) runs.delete(ctx.runId);
      }
    },
    async wrapModel(ctx, next) {
      const asked = await askedModel(ctx, clean.question(ctx));
      const entry = find<ModelEntry>(asked, ctx);
      if (!entry) return onMiss === 'error' ? missing(asked, ctx) : next();
      const restore = withIds(ctx);
      if ('feedback' in entry.answer) throwFeedback(restore.value(entry.answer.feedback), ctx);
      holdGuards(entry.answer, restore, ctx, runOf(ctx).refused);
      // Through the kernel like any model: streamed, guarded, counted and paid for as before.
      return next({ model: playbackModel(ctx.model, entry.answer, restore) });
    },
    wrapTool(ctx, next) {
      const asked = askedTool(ctx, clean.question(ctx));
      const entry = find<ToolEntry>(asked, ctx);
      const { questions, taken, refused } = runOf(ctx);
      if (!entry) {
        const reason = refused.get(saying(ctx.toolCall));
        if (reason !== undefined) return Promise.resolve(errorResult(reason));
        return onMiss === 'error' ? missing(asked, ctx) : next();
      }
      const call = `${ctx.toolCall.id} ${asked.key}`;
      const own = questions.get(call) ?? [];
      questions.set(call, own);
      const playback: Playback = {
        first: entry,
        // A call that waited for somebody has another recording, with what happened then.
        take: () => find<ToolEntry>(asked, ctx) ?? missing(asked, ctx),
        giveBack: (one) => taken.delete(one),
        questions: own,
      };
      return nextWithTool(ctx, playbackTool(ctx.tool!, playback, withIds(ctx)), next);
    },
  });
}

/** A failure in here fails the run in the end, whatever layers and tools make of it. */
function loudly<T>(run: ReplayedRun, find: () => T): T {
  try {
    return find();
  } catch (error) {
    run.failure ??= { error };
    throw run.failure.error;
  }
}
