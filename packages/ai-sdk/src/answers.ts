/** The answer of a run, as a result or as a stream of the AI SDK. */

import { type AgentEvent, AlliumError, type AssistantMessage, RunError, type RunStream } from 'allium';
import type { Loose, SpecVersion } from './language-model.js';
import { type Once, type Told, toolsStayOutside } from './run-once.js';
import { contentPart, ending, responseOf, toContent, warningsOf, withMetadata } from './to-content.js';

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
  // We stop a run ourselves when its answer has calls. Any other stop is a refusal.
  const own = result.stop?.by === toolsStayOutside.name;
  if (answer && (result.status === 'done' || own)) return answer as AssistantMessage;
  const { reason = result.status, message = 'The call was stopped.', by } = result.stop ?? {};
  throw new AlliumError('MODEL_CALL_STOPPED', message, { data: { reason, by } });
}

/** Errors of the provider pass through as the same object: the AI SDK knows which of them to retry. */
function rethrow(error: unknown): never {
  throw error instanceof RunError && error.code === 'MODEL_ERROR' ? (error.cause ?? error) : error;
}

/**
 * The parts of a stream of the AI SDK. Blocks end when the answer is complete: only then is the provider's metadata
 * known.
 */
export async function* partsOf(
  { run, told }: Once,
  version: SpecVersion,
  onReset: 'error' | 'hold',
): AsyncGenerator<Loose, undefined> {
  const open = new Map<number, 'text' | 'reasoning'>();
  let shown: string | undefined;
  // What was shown no longer holds: another answer follows, or the call fails, with an error that says why.
  let isReset = false;
  try {
    for await (const event of run) {
      if (onReset === 'hold') continue;
      const parts = [...live(event, open)];
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
  for (const [block, part] of answer.content.entries()) yield* whole(block, part, open, version);
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

/** Text and thinking as they come; calls follow when they are whole. */
function* live(event: AgentEvent, open: Map<number, 'text' | 'reasoning'>): Generator<Loose> {
  if (event.type !== 'message_update' || event.delta.type === 'tool-call') return;
  const { type, block, text } = event.delta;
  const kind = type === 'text' ? 'text' : 'reasoning';
  if (!open.has(block)) {
    open.set(block, kind);
    yield { type: `${kind}-start`, id: String(block) };
  }
  yield { type: `${kind}-delta`, id: String(block), delta: text };
}

/** The rest of a part: its end if it was shown already, otherwise all of it. */
function* whole(
  block: number,
  part: AssistantMessage['content'][number],
  open: ReadonlyMap<number, string>,
  version: SpecVersion,
): Generator<Loose> {
  if (part.type !== 'text' && part.type !== 'thinking') {
    yield contentPart(part, version);
    return;
  }
  const kind = part.type === 'text' ? 'text' : 'reasoning';
  const id = String(block);
  if (!open.has(block)) {
    yield { type: `${kind}-start`, id };
    yield { type: `${kind}-delta`, id, delta: part.text };
  }
  yield { type: `${kind}-end`, id, ...withMetadata(part) };
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
