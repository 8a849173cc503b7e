/** The context around a whole run. */

import { Context } from './base-context.js';
import type { Message } from './messages.js';
import type { RunResult } from './result.js';
import type { Run } from './run.js';
import type { Scope } from './scope.js';

/** Around a whole run. */
export class RunContext extends Context {
  /** The messages the run was started with; reassign to change them. Empty for a resume. */
  declare input: readonly Message[];
  declare result: RunResult | undefined;
  /** In `afterRun`: why the run failed. */
  declare error: unknown;

  /** @internal */
  constructor(run: Run, scope: Scope, input: readonly Message[]) {
    super(run, scope, run.call);
    this.input = input;
    this.result = undefined;
    this.error = undefined;
  }

  get seam(): 'run' {
    return 'run';
  }

  /** History and input. */
  get messages(): readonly Message[] {
    return Object.freeze([...this.history, ...this.input]);
  }

  /** @internal */
  _fork(_scope?: Scope): RunContext {
    this._commit();
    return this._inherit(new RunContext(this._run, this._scope, this.input));
  }

  /** @internal A run happens once, so what its layers write before it holds inside it; cells of the call stay here. */
  private _commit(): void {
    const written = this._state;
    if (!written) return;
    this._run.cells.stage(written);
    this._state = undefined;
    for (const write of written.standing())
      if (write.cell.scope === 'call') this.state.update(write.cell, (value) => write.apply(value));
  }
}
