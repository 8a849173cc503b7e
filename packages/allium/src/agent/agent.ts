/** An agent as users hold it: the one that the kernel runs, and what can be made of it without its private fields. */

import { Agent as Running } from '../kernel/agent/agent.js';
import type { AgentOptions } from '../kernel/agent/agent-options.js';
import type { ObserverProblem } from '../kernel/events/observer-feed.js';
import { shown } from '../kernel/lib/errors.js';
import { checkKeys } from '../kernel/lib/shapes.js';
import type { RunOptions } from '../kernel/protocol/run-options.js';
import type { Tool } from '../kernel/protocol/tool.js';
import { terminalText } from '../kit/terminal-text.js';
import { memoryStore } from '../stores/memory/index.js';
import { tracer } from '../trace/index.js';
import { type AsToolOptions, agentTool } from './agent-tool.js';
import { type Explanation, explainPlan } from './explain.js';

declare module '../kernel/protocol/contexts.js' {
  interface RunningAgent extends Agent {}
}

export class Agent extends Running {
  constructor(options: AgentOptions) {
    super(options, { warn, tracer, newStore: memoryStore });
  }

  /**
   * Makes this agent a tool of another. Each call is a run in a session under the caller's, in the caller's store. It
   * shares budgets, abort and tenant. Its questions suspend the caller, and the answers reach it.
   *
   * @example
   * const clerk = new Agent({ name: 'clerk', model, tools: [lookUp] });
   * const boss = new Agent({ model, tools: [clerk.asTool({ name: 'ask_clerk', description: 'Asks the clerk.' })] });
   */
  asTool<Input = { prompt: string }, Output = Input>(
    options: AsToolOptions<Input, Output>,
  ): Tool<Input, Output> {
    return agentTool(this, options);
  }

  /** Shows what is composed, in which order, and what is dangerous about it. `String(explanation)` is for people. */
  explain(options: Pick<RunOptions, 'middleware'> = {}): Explanation {
    checkKeys('explain()', options, ['middleware']);
    return explainPlan(this.planFor(options.middleware));
  }
}

function warn(problem: ObserverProblem): void {
  const what =
    problem.error === undefined
      ? `is too slow; ${problem.dropped} events were dropped`
      : `threw: ${shown(problem.error instanceof Error ? problem.error.message : problem.error)}`;
  globalThis.console.warn(terminalText(`[allium] observer "${problem.observer}" ${what}`));
}
