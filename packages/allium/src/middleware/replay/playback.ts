/** A model and a tool that play back recordings instead of doing anything. */

import type { Cleaner } from '../../cassette/clean.js';
import { fromStoredError } from '../../cassette/failures.js';
import type { Question, StoredAnswer, StoredStop, ToolEntry } from '../../cassette/format.js';
import { partsOfStored } from '../../cassette/pieces.js';
import { type Model, type ModelPart, StopRun, type Tool, toolResult } from '../../index.js';
import { withExecute } from '../../kit/index.js';

/** An answer that the model gave, or broke off. */
type Given = Exclude<StoredAnswer, { readonly feedback: unknown }>;

/** Streams a recorded answer, in the pieces it came in. `restore` puts the ids of this run into it. */
export function playbackModel(asked: Model, answer: Given, restore: Cleaner): Model {
  return {
    ...whoAnswered(asked, answer),
    async *stream(): AsyncGenerator<ModelPart> {
      if ('stop' in answer) throw stopFrom(answer.stop, restore);
      yield* partsOfStored(answer.content ?? [], restore);
      if ('error' in answer) throw fromStoredError(restore.value(answer.error));
      const { finish: reason, usage, metadata } = answer;
      yield {
        type: 'finish',
        reason,
        ...(usage && { usage }),
        ...(metadata && { metadata: restore.value(metadata) }),
      };
    },
  };
}

/** The model that was asked, with its price; or the one that answered instead, further in. */
function whoAnswered({ provider, id, price }: Model, answer: Given): Omit<Model, 'stream'> {
  const other = 'finish' in answer ? answer.model : undefined;
  if (other === undefined) return { provider, id, ...(price && { price }) };
  const slash = other.indexOf('/');
  return { provider: other.slice(0, slash), id: other.slice(slash + 1) };
}

/** The recordings of one call. */
export interface Playback {
  readonly first: ToolEntry;
  /** Finds the next one. */
  take(): ToolEntry;
  /** This one hasn't happened yet. */
  giveBack(entry: ToolEntry): void;
  /** What the call has asked so far, also before the run was resumed. */
  readonly questions: Question[];
}

/**
 * The same tool, but what it shows, asks, returns or throws comes from recordings. Like any tool, it runs again from
 * the start when it is answered: it asks everything again, and each recording begins with the questions of the last
 * one.
 */
export function playbackTool(tool: Tool, calls: Playback, restore: Cleaner): Tool {
  const { first, questions } = calls;
  const execute: Tool['execute'] = async (_, ctx) => {
    let shown = 0;
    let asked = 0;
    const askAll = async () => {
      for (; asked < questions.length; asked++) await ctx.suspend(restore.value(questions[asked]!));
    };
    for (let entry = first; ; entry = calls.take()) {
      const { updates = [], outcome } = entry;
      for (const { content, details } of updates.slice(shown))
        await ctx.update(restore.value(content), restore.value(details));
      shown = Math.max(shown, updates.length);
      await askAll().catch((waits) => {
        if (!('again' in outcome)) calls.giveBack(entry);
        throw waits;
      });
      if ('result' in outcome) return toolResult(restore.value(outcome.result));
      if ('error' in outcome) throw fromStoredError(restore.value(outcome.error));
      if ('stop' in outcome) throw stopFrom(outcome.stop, restore);
      // What the tool did with the answer was recorded next.
      if (!outcome.again) questions.push(outcome.suspend);
      await askAll();
    }
  };
  return withExecute(tool, execute);
}

function stopFrom({ reason, message }: StoredStop, restore: Cleaner): StopRun {
  return new StopRun(reason, restore.text(message));
}
