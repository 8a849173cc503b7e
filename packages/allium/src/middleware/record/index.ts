/** Writes every model and tool call to a cassette, from which `replay` answers them again. */

import { CLEANING, type Cleaner, cleaning } from '../../cassette/clean.js';
import { stopOf, toBareError, toStoredError, toStoredFailure } from '../../cassette/failures.js';
import type {
  StoredAnswer,
  StoredContent,
  StoredOutcome,
  StoredResult,
  ToolEntry,
} from '../../cassette/format.js';
import { storedParts } from '../../cassette/pieces.js';
import { askedModel, askedTool } from '../../cassette/questions.js';
import {
  AlliumError,
  defineMiddleware,
  isControl,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  modelName,
  type PendingRequest,
  type ToolContent,
  type ToolContext,
  type ToolResult,
  type Usage,
} from '../../index.js';
import {
  controlKind,
  errorKind,
  type Fields,
  feedbackOf,
  isRunAborted,
  isTellable,
  judgeFailure,
  judgesAnswers,
  judgesResults,
  kinds,
  type NamedOptions,
  named,
  nextWithProgress,
  type OptionsOf,
  readOptions,
  type ToolProgress,
  toStoredJson,
  verdictsOf,
} from '../../kit/index.js';
import { type Heard, listen, streamOf } from './heard.js';
import { type Place, SINK, writer } from './writer.js';

export const OPTIONS = {
  /**
   * The cassette: a file, started over with the first call; a list that lines are added to; or a function that is
   * called with each line and awaited. If it throws, the recorded call fails.
   */
  to: kinds.required(SINK),
  ...CLEANING,
  ...named('record'),
} satisfies Fields;

export interface RecordOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Records model and tool calls, each under a key of what was asked. It is declared a sink: no line contains secrets
 * or what guards removed. Put it last, so that it also sees the calls other middleware make.
 *
 * @example
 * new Agent({ model, tools: [weather], middleware: [record({ to: 'weather.jsonl' })] });
 */
export function record(options: RecordOptions): Middleware {
  const { to, redact, normalise, name, madeWith } = readOptions('record', OPTIONS, options);
  const clean = cleaning({ redact, normalise });
  const cassette = writer(to);
  return defineMiddleware({
    name,
    madeWith,
    sink: true,
    traits: ['exports'],
    async wrapRun(ctx, next) {
      let resumable = false;
      try {
        const result = await next();
        resumable = result.status === 'suspended';
        return result;
      } finally {
        cassette.end(ctx.runId, resumable);
      }
    },
    async wrapModel(ctx, next) {
      const asked = await askedModel(ctx, clean.question(ctx));
      const place = cassette.begin(ctx.runId);
      const request = place.shortened(asked.key, asked.request);
      const write = (answer: StoredAnswer | undefined) => place.fill(answer && { ...asked, request, answer });
      const streams = listen(ctx);
      let response: ModelResponse;
      try {
        response = await next();
      } catch (error) {
        await write(failedAnswer(error, ctx, streams, clean.answer(ctx)));
        throw error;
      }
      await write(await answerOf(response, ctx, streams, clean.answer(ctx)));
      return response;
    },
    async wrapTool(ctx, next) {
      const asked = askedTool(ctx, clean.question(ctx));
      const place = cassette.begin(ctx.runId);
      const progress: ToolProgress[] = [];
      const write = (outcome: StoredOutcome | undefined, cleaner: Cleaner) => {
        const updates = judgesResults(ctx) ? [] : progress.map((one) => storedUpdate(one, cleaner));
        return place.fill(outcome && { ...asked, ...(updates.length > 0 && { updates }), outcome });
      };
      let result: ToolResult;
      try {
        result = await nextWithProgress(ctx, (...heard) => progress.push(heard), next);
      } catch (error) {
        const cleaner = clean.answer(ctx);
        await write(await failedOutcome(error, ctx, cleaner, place), cleaner);
        throw error;
      }
      const cleaner = clean.answer(ctx);
      await write({ result: storedResult(result, cleaner) }, cleaner);
      return result;
    },
  });
}

async function answerOf(
  response: ModelResponse,
  ctx: ModelContext,
  streams: readonly Heard[],
  clean: Cleaner,
): Promise<StoredAnswer> {
  const { content, stopReason, usage, metadata, model } = response;
  const verdicts = await verdictsOf(response, ctx);
  return {
    content: storedParts(streamOf(response, streams).parts, content, clean),
    finish: stopReason,
    ...(usage && usage.totalTokens > 0 && { usage: counted(usage) }),
    ...(metadata && { metadata: clean.value(metadata) }),
    ...(model !== undefined && model !== modelName(ctx.model) && { model }),
    ...(verdicts.length > 0 && {
      verdicts: verdicts.map(({ call, ...said }) => ({ call, ...clean.value(said) })),
    }),
  };
}

/** Undefined for a call that was cut off from outside, or that failed because of a cassette further in. */
function failedAnswer(
  error: unknown,
  ctx: ModelContext,
  streams: readonly Heard[],
  clean: Cleaner,
): StoredAnswer | undefined {
  const stop = stopOf(error);
  if (stop) return { stop: clean.value(stop) };
  const feedback = feedbackOf(error);
  if (feedback) return { feedback: clean.value({ reason: feedback.reason, by: feedback.by }) };
  if (isControl(error) || ctx.signal.aborted || isComplaint(error)) return undefined;
  const { parts, blocks } = streams.at(-1) ?? { parts: [], blocks: [] };
  // Guards haven't seen all of an answer that broke off, so nobody knows whether it may be written.
  const content = judgesAnswers(ctx) ? [] : storedParts(parts, blocks, clean);
  const stored = toStoredError(error);
  const told = isTellable(stored, ctx) ? stored : toBareError(error, errorKind(error));
  return { ...(content.length > 0 && { content }), error: clean.value(told) };
}

async function failedOutcome(
  error: unknown,
  ctx: ToolContext,
  clean: Cleaner,
  place: Place,
): Promise<StoredOutcome | undefined> {
  const stop = stopOf(error);
  if (stop) return { stop: clean.value(stop) };
  if (controlKind(error) === 'suspend') {
    const { id, title, details, timeoutMs } = (error as { readonly request: PendingRequest }).request;
    const suspend = clean.value({ title, details: toStoredJson(details), timeoutMs });
    return { suspend, ...(place.waitsAgain(id) && { again: true }) };
  }
  if (isControl(error) || isRunAborted(ctx) || isComplaint(error)) return undefined;
  return judgesResults(ctx) ? guardedFailure(error, ctx, clean) : { error: toStoredFailure(error, clean) };
}

/**
 * The error as guards let the model read it, so that a replay leaves the same result; or what they put in its place.
 */
async function guardedFailure(
  error: unknown,
  ctx: ToolContext,
  clean: Cleaner,
): Promise<StoredOutcome | undefined> {
  try {
    const { text, changed, refused } = await judgeFailure(error, ctx);
    if (refused !== undefined) return { result: { content: clean.text(refused), isError: true } };
    const stored = toStoredFailure(error, clean);
    if (!changed && isTellable(stored, ctx)) return { error: stored };
    return { error: clean.value(toBareError(error, text)) };
  } catch (ended) {
    // A guard stops the run, or broke. The kernel asks it again and finds out too.
    const stop = stopOf(ended);
    return stop && { stop: clean.value(stop) };
  }
}

function isComplaint(error: unknown): boolean {
  return error instanceof AlliumError && error.code.startsWith('CASSETTE_');
}

function storedResult({ content, details, isError, terminate }: ToolResult, clean: Cleaner): StoredResult {
  return {
    content: storedContent(content, clean),
    ...(details !== undefined && { details: clean.value(toStoredJson(details)) }),
    ...(isError && { isError }),
    ...(terminate && { terminate }),
  };
}

function storedUpdate(
  [partial, details]: ToolProgress,
  clean: Cleaner,
): NonNullable<ToolEntry['updates']>[number] {
  const content = typeof partial === 'string' ? clean.text(partial) : storedContent(partial, clean);
  return { content, ...(details !== undefined && { details: clean.value(toStoredJson(details)) }) };
}

function storedContent(content: readonly ToolContent[], clean: Cleaner): StoredContent {
  const [first, ...more] = content;
  const plain = first?.type === 'text' && more.length === 0 && first.metadata === undefined;
  return plain ? clean.text(first.text) : clean.value(content);
}

/** Counts that are not zero. */
function counted(usage: Usage): Partial<Usage> {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => count > 0));
}
