/** The answer of a run, as a result or as a stream of the AI SDK. */

import { type AgentEvent, AlliumError, type AssistantMessage, RunError, type RunStream } from 'allium';
import type { Loose, SpecVersion } from './language-model.js';
import { LiveParts } from './live-parts.js';
import { type Once, type Told, toolsStayOutside } from './run-once.js';
import { ending, responseOf, toContent, warningsOf } from './to-content.js';

/** The answer as `doGenerate` gives it. */
export async function wholeOf({ run, told }: Once, version: SpecVersion): Promise<Loose> {
  const answer = await lastAnswer(run);
  const { request, headers, usage } = toldOf(answer, told);
  return {
    content: toContent(answer, version),
    ...ending(answer, version, usage),
    warnings: warningsOf(answer),
    response: { ...responseOf(answer), ...(headers !== undefined && { headers }) },
    ...(request !== undefined && { request }),
  };
}

function toldOf({ model }: AssistantMessage, told: Told): Partial<Told> {
  return model === told.model ? told : {};
}

async function lastAnswer(run: RunStream): Promise<AssistantMessage> {
  const result = await run.result.catch(rethrow);
  const answer = result.messages.findLast((message) => message.role === 'assistant');
  // We stop a run ourselves when its answer has calls, and how an answer ended is for the AI SDK to judge. Any other stop
  // is a refusal.
  const own = result.stop?.by === toolsStayOutside.name || ENDED_SO.has(result.stop?.reason);
  if (answer && (result.status === 'done' || own)) return answer as AssistantMessage;
  const { reason = result.status, message = 'The call was stopped.', by } = result.stop ?? {};
  throw new AlliumError('MODEL_CALL_STOPPED', message, { data: { reason, by } });
}

/** An answer that was cut off, or that a content filter of the provider ended. */
const ENDED_SO: ReadonlySet<string | undefined> = new Set(['cut_off', 'content_filter']);

/**
 * Errors of the provider pass through as the same object: the AI SDK knows which of them to retry. So does the reason of an
 * abort, which it and others know by its name.
 */
function rethrow(error: unknown): never {
  const isOther = error instanceof RunError && (error.code === 'MODEL_ERROR' || error.code === 'ABORTED');
  throw isOther ? (error.cause ?? error) : error;
}

/** The parts of a stream of the AI SDK. */
export async function* partsOf(
  { run, told, isGuarded }: Once,
  version: SpecVersion,
  onReset: 'error' | 'hold',
): AsyncGenerator<Loose, undefined> {
  const live = new LiveParts({ version, isGuarded, begun: (block) => told.begun?.at(block) });
  let shown: string | undefined;
  // What was shown no longer holds: another answer follows, or the call fails, with an error that says why.
  let isReset = false;
  try {
    for await (const event of run) {
      if (onReset === 'hold') continue;
      const parts = [...live.of(event)];
      if (event.type === 'message_reset' && event.messageId === shown) isReset = true;
      const isOther = shown !== undefined && messageOf(event) !== shown;
      if (parts.length > 0 ? isReset || isOther : isReset && asksAgain(event)) throw takenBack();
      if (parts.length === 0) continue;
      if (shown === undefined) yield { type: 'stream-start', warnings: told.warnings ?? [] };
      shown = messageOf(event);
      yield* parts;
    }
  } catch (error) {
    // The result reports why the run failed.
    if (error instanceof AlliumError && error.code === 'ANSWER_TAKEN_BACK') throw error;
  }
  const answer = await lastAnswer(run);
  if (isReset) throw takenBack();
  if (shown === undefined) yield { type: 'stream-start', warnings: warningsOf(answer) };
  yield { type: 'response-metadata', ...responseOf(answer) };
  yield* live.rest(toContent(answer, version));
  yield { type: 'finish', ...ending(answer, version, toldOf(answer, told).usage) };
}

function takenBack(): AlliumError {
  return new AlliumError(
    'ANSWER_TAKEN_BACK',
    "An answer was withdrawn after part of it had been streamed, and a stream of the AI SDK cannot express that. Use onReset: 'hold'.",
  );
}

/** `retry` and `fallback` say so before they wait and call. */
function asksAgain(event: AgentEvent): boolean {
  return event.type === 'custom' && (event.name === 'retry' || event.name === 'fallback');
}

function messageOf(event: AgentEvent): string | undefined {
  return 'messageId' in event ? event.messageId : undefined;
}

export function streamOf(
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
