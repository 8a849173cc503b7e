/** What an answer that its model did not complete means for its calls and for the run. */
import type { AssistantMessage } from '../messages/messages.js';
import type { Stop } from '../protocol/stop.js';
import type { ModelRun } from './model-run.js';

const FINAL: Stop = Object.freeze({ reason: 'final' });

/** Why the calls of an answer don't run, if its model did not get to the end. `limit`: its limit of output tokens. */
export function whyIncomplete(message: AssistantMessage, limit: number | undefined): string | undefined {
  if (message.stopReason === 'length')
    return `the answer was cut off ${at(message, limit)}, so its calls may be incomplete. Ask for less at once: fewer calls, or shorter arguments.`;
  if (message.stopReason === 'content-filter') return 'a content filter of the provider ended the answer.';
  return undefined;
}

/**
 * The run ends with this answer, whatever waits: a model that is cut off twice in a row would be cut off forever. After
 * a content filter, a hook may decide to ask again.
 */
export function endingStop(
  run: ModelRun,
  message: AssistantMessage,
  decision: 'natural' | 'loop_to_model',
  limit: number | undefined,
): Stop | undefined {
  if (message.stopReason === 'content-filter' && decision === 'natural')
    return {
      reason: 'content_filter',
      message: 'A content filter of the provider ended the answer.',
      by: 'kernel',
    };
  if (run.open.cutOff < 2) return undefined;
  return cutOff(`Two answers in a row were cut off, the last one ${at(message, limit)}.`);
}

/** How the run ends if nothing keeps it going. */
export function naturalEnd(message: AssistantMessage | undefined, limit: number | undefined): Stop {
  if (message?.stopReason !== 'length') return FINAL;
  return cutOff(`The answer was cut off ${at(message, limit)}.`);
}

function cutOff(what: string): Stop {
  return {
    reason: 'cut_off',
    message: `${what} Raise \`settings.maxOutputTokens\`, or ask for less.`,
    by: 'kernel',
  };
}

/** The limit if it is known, or what the answer used, which is about the same. */
function at({ usage }: AssistantMessage, limit: number | undefined): string {
  if (limit !== undefined) return `at its limit of ${limit} output tokens`;
  return usage && usage.outputTokens > 0
    ? `after ${usage.outputTokens} output tokens`
    : 'at its limit of output tokens';
}
