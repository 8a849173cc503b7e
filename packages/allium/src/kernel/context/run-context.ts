/** The context around a whole run. */

import type { Scope } from '../lib/scope.js';
import type { Message } from '../messages/messages.js';
import type { RunContext as PublicRunContext } from '../protocol/contexts.js';
import type { RunResult } from '../protocol/result.js';
import { Context } from './base-context.js';
import type { RunPort } from './run-port.js';

/** The input as the run took it in; undefined until then. */
export interface Taken {
  input: readonly Message[] | undefined;
}

/** Around a whole run. */
export class RunContext extends Context implements PublicRunContext {
  declare result: RunResult | undefined;
  declare error: unknown;
  /** @internal */ declare _input: readonly Message[];
  /** @internal What became of the input of the run. Undefined while other messages are judged. */
  declare readonly _taken: Taken | undefined;

  /** @internal */
  constructor(run: RunPort, scope: Scope, input: readonly Message[], taken?: Taken) {
    super(run, scope, run.call);
    this._input = Object.freeze(input);
    this._taken = taken;
    this.result = undefined;
    this.error = undefined;
  }

  get seam(): 'run' {
    return 'run';
  }

  get input(): readonly Message[] {
    return this._taken?.input ?? this._input;
  }
  set input(input: readonly Message[]) {
    this._input = input;
  }

  get messages(): readonly Message[] {
    return this._taken?.input ? this.history : Object.freeze([...this.history, ...this.input]);
  }

  /** @internal */
  _fork(_scope?: Scope): RunContext {
    this._commit();
    return this._inherit(new RunContext(this._run, this._scope, this.input, this._taken));
  }

  /** @internal A run happens once, so what its layers wrote counts from here on. `call` cells stay in this context. */
  private _commit(): void {
    const written = this._state;
    if (!written) return;
    this._run.cells.stage(written);
    this._state = undefined;
    for (const write of written.standing())
      if (write.cell.scope === 'call') this.state.update(write.cell, (value) => write.apply(value));
  }
}
