/** The context of hooks after a response and at the end of a turn or run. */

import type { AssistantMessage, Message, ModelResponse, ToolMessage } from '../messages/messages.js';
import type { TurnContext as PublicTurnContext } from '../protocol/contexts.js';
import { Context } from './base-context.js';
import type { RunPort } from './run-port.js';

/** After a response and at the end of a turn or run. */
export class TurnContext extends Context implements PublicTurnContext {
  declare readonly message: AssistantMessage | undefined;
  declare readonly toolResults: readonly ToolMessage[];
  declare readonly more: boolean;

  /** @internal */
  constructor(
    run: RunPort,
    message: AssistantMessage | undefined,
    toolResults: readonly ToolMessage[],
    more: boolean,
  ) {
    super(run, run.scope, run.call);
    this.message = message;
    this.toolResults = Object.freeze(toolResults);
    this.more = more;
  }

  get seam(): 'run' {
    return 'run';
  }

  /** @internal A hook replaced the response: later hooks see the new one here too. */
  _answeredWith(response: ModelResponse): void {
    const message: AssistantMessage = Object.freeze({ ...response, id: this.message!.id });
    Object.assign(this, { message });
  }

  get newMessages(): readonly Message[] {
    return this._run.newMessages();
  }

  /** @internal Runs hooks. Their writes count even if one of them ends the run. */
  async _asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } finally {
      if (this._state) this._run.cells.stageAtEnd(this._state);
    }
  }

  get output(): unknown {
    return this._run.output;
  }

  setOutput(output: unknown): void {
    this._run.setOutput(output);
  }
}
