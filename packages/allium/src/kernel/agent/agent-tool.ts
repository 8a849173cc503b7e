/** An agent as a tool of another agent. */

import { internal } from '../context/context.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, checkValue, type Fields, type Kind } from '../lib/shapes.js';
import type { MessageInput } from '../messages/messages.js';
import { objectInput } from '../messages/object-input.js';
import type { StandardSchema } from '../messages/standard-schema.js';
import { type Tool, type ToolOptions, tool } from '../protocol/tool.js';
import type { Agent } from './agent.js';
import { childResult, forwardChildEvent } from './child-result.js';
import { runChild } from './child-run.js';
import { childToolTags } from './child-tags.js';

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

/** Checked by `tool()`. */
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
  agent: Agent,
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
    async execute(args, given) {
      const ctx = internal(given);
      const onEvent = ctx._run.watched
        ? (event: Parameters<typeof forwardChildEvent>[1], id: string) => forwardChildEvent(ctx, event, id)
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
