/**
 * Fields of a context as other libraries call them. Without this, assigning one does nothing and reading one gives
 * undefined, and the run goes on without what was meant.
 */
import { AlliumError } from '../lib/errors.js';

const CONTEXT: Readonly<Record<string, string>> = {
  provider: '`ctx.model`',
  extra: '`ctx.metadata`',
  call_next: '`next`, the second parameter of a layer',
  force_continue: '`ctx.forceContinue`',
  system_instructions: '`ctx.systemPrompt`',
  system_prompt: '`ctx.systemPrompt`',
  timeout_s: '`ctx.timeoutMs`, in milliseconds',
  timeoutS: '`ctx.timeoutMs`, in milliseconds',
  function_name: '`ctx.toolCall.name`',
  toolName: '`ctx.toolCall.name`',
  toolCallId: '`ctx.toolCall.id`',
  tool_call: '`ctx.toolCall`',
  arguments: '`ctx.args`',
  assistant_message: '`ctx.assistantMessage`',
  is_error: '`ctx.isError`',
  tool_results: '`ctx.toolResults`',
  new_messages: '`ctx.newMessages`',
  abortSignal: '`ctx.signal`',
  run_id: '`ctx.runId`',
  session_id: '`ctx.sessionId`',
  step: '`ctx.turn`',
};

const STATE: Readonly<Record<string, string>> = {
  scratch: 'a cell of `defineState()`, read with `ctx.state.get(cell)`',
  step: '`ctx.turn`',
  usage: '`ctx.usage`',
  messages: '`ctx.history`',
};

/** Makes using one of these names of `ctx` an error that says what it is called here. */
export function refuseForeignFields(context: object): void {
  refuse(context, 'ctx', CONTEXT);
}

export function refuseForeignState(state: object): void {
  refuse(state, 'ctx.state', STATE);
}

function refuse(prototype: object, of: string, names: Readonly<Record<string, string>>): void {
  for (const [name, here] of Object.entries(names)) {
    const fail = (): never => {
      const field = `${of}.${name}`;
      throw new AlliumError('INVALID_OPTION', `There is no \`${field}\`. Here that is ${here}.`, {
        data: { field },
      });
    };
    Object.defineProperty(prototype, name, { get: fail, set: fail, configurable: true });
  }
}
