/** Recordings in the place of what was recorded: a model and a tool that do it all again, without doing anything. */
import type { Cleaner } from '../../cassette/clean.js';
import { fromStoredError } from '../../cassette/failures.js';
import type { StoredAnswer, StoredStop, ToolEntry } from '../../cassette/format.js';
import { partsOfStored } from '../../cassette/pieces.js';
import { StopRun } from '../../kernel/errors.js';
import type { Model, ModelPart } from '../../kernel/model.js';
import { type Tool, toolResult } from '../../kernel/tool.js';

/** Streams a recorded answer, in the pieces it came in. `restore` puts the ids of this run into it. */
export function playbackModel(asked: Model, answer: StoredAnswer, restore: Cleaner): Model {
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

/** The model that was asked, with its price; or another one that answered in its place further in. */
function whoAnswered({ provider, id, price }: Model, answer: StoredAnswer): Omit<Model, 'stream'> {
  const other = 'finish' in answer ? answer.model : undefined;
  if (other === undefined) return { provider, id, ...(price && { price }) };
  const slash = other.indexOf('/');
  return { provider: other.slice(0, slash), id: other.slice(slash + 1) };
}

/** The same tool, but what it shows, returns or throws comes from recordings. `take` finds the next one of this call. */
export function playbackTool(tool: Tool, first: ToolEntry, take: () => ToolEntry, restore: Cleaner): Tool {
  const execute: Tool['execute'] = async (_, ctx) => {
    for (let entry = first; ; entry = take()) {
      for (const { content, details } of entry.updates ?? [])
        await ctx.update(restore.value(content), restore.value(details));
      const { outcome } = entry;
      if ('result' in outcome) return toolResult(restore.value(outcome.result));
      if ('error' in outcome) throw fromStoredError(restore.value(outcome.error));
      if ('stop' in outcome) throw stopFrom(outcome.stop, restore);
      // What the tool did with the answer is what was recorded next.
      await ctx.suspend(restore.value(outcome.suspend));
    }
  };
  return Object.create(tool, { execute: { value: execute, enumerable: true } });
}

function stopFrom({ reason, message }: StoredStop, restore: Cleaner): StopRun {
  return new StopRun(reason, restore.text(message));
}
