/** An agent as a tool of another agent. */

import * as kinds from '../kernel/lib/kinds.js';
import { checkFields, checkValue, type Fields, type Kind } from '../kernel/lib/shapes.js';
import type { MessageInput } from '../kernel/messages/messages.js';
import type { StandardSchema } from '../kernel/messages/standard-schema.js';
import type { RunningAgent } from '../kernel/protocol/contexts.js';
import type { Tool, ToolOptions } from '../kernel/protocol/tool.js';
import { childResult, forwardChildEvent } from '../kit/child-result.js';
import { type ChildRun, runChild } from '../kit/child-run.js';
import { childToolTags } from '../kit/child-tags.js';
import { tool } from '../kit/define-tool.js';
import { objectInput } from '../kit/object-input.js';

export interface AsToolOptions<Input = { prompt: string }, Output = Input>
  extends Pick<
    ToolOptions<Input, Output>,
    'name' | 'description' | 'toJsonSchema' | 'concurrency' | 'timeoutMs' | 'tags'
  > {
  /** The input the calling model provides. @default `{ prompt: string }` */
  readonly input?: StandardSchema<Input, Output>;
  /** Makes the agent's message from the input. @default its `prompt`, or all of a custom input as JSON */
  readonly prompt?: (args: Output) => MessageInput | readonly MessageInput[];
  /** Whether the caller's guards also judge this agent's input, output and calls, after its own guards. @default true */
  readonly inheritGuards?: boolean;
}

/** `tool()` checks it. */
const elsewhere = kinds.anything;

const OPTIONS: Fields = {
  name: elsewhere,
  description: elsewhere,
  input: elsewhere,
  toJsonSchema: elsewhere,
  concurrency: elsewhere,
  timeoutMs: elsewhere,
  tags: elsewhere,
  prompt: { ...kinds.func(), expected: 'a function of the input' },
  inheritGuards: kinds.flag,
} satisfies Record<keyof AsToolOptions, Kind>;

/** See `agent.asTool()`. */
export function agentTool<Input, Output>(
  agent: RunningAgent,
  options: AsToolOptions<Input, Output>,
): Tool<Input, Output> {
  checkValue('options', kinds.record, options);
  checkFields('asTool()', OPTIONS, options);
  const { input, prompt, inheritGuards = true, tags = [], ...rest } = options;
  const told = prompt ?? (input ? (args: Output) => JSON.stringify(args) : promptOf);
  return tool<Input, Output>({
    ...rest,
    tags: [...tags, ...childToolTags(inheritGuards)],
    input: input ?? (PROMPT as unknown as StandardSchema<Input, Output>),
    // A repeated call continues where it was, so it is never in doubt.
    onInDoubt: 'retry',
    async execute(args, ctx) {
      const onEvent: ChildRun['onEvent'] = ctx.isWatched
        ? (event, id) => forwardChildEvent(ctx, event, id)
        : undefined;
      return childResult(await runChild(ctx, { agent, input: told(args), onEvent, inheritGuards }));
    },
  });
}

const PROMPT = objectInput<{ prompt: string }>({
  prompt: { type: 'text', description: 'What to do, with everything needed to do it.' },
});

function promptOf(args: unknown): string {
  return (args as { prompt: string }).prompt;
}
