/** Which middleware can work around single model calls of the AI SDK, and what to use instead of the others. */

import { AlliumError, type Middleware } from 'allium';

/** Hooks about things outside a model call, which the AI SDK does itself. */
const OUTSIDE: Partial<Record<keyof Middleware, string>> = {
  tools: 'give its tools to generateText() or streamText()',
  wrapRun: 'use wrapModel, which surrounds each call',
  beforeRun: 'use beforeModel',
  afterRun: 'use afterModel',
  wrapTool: 'the AI SDK runs the tools',
  beforeTool: 'the AI SDK runs the tools',
  afterTool: 'the AI SDK runs the tools',
  resolveToolCall: 'the AI SDK runs the tools',
  beforeToolCall: 'the AI SDK runs the tools; use their `needsApproval`',
  afterToolCall: 'the AI SDK runs the tools',
  shouldStopAfterTurn: 'use `stopWhen`',
  onRunEnd: 'the AI SDK ends the loop',
};

/** Throws if a middleware can't work inside a single model call. */
export function checkFits(middleware: Middleware): void {
  const name = middleware.name ?? 'unnamed';
  const fail = (what: string, remedy: string) =>
    new AlliumError(
      'INVALID_MIDDLEWARE',
      `Middleware "${name}" has ${what}, which does not work inside the AI SDK, where a middleware sees single model calls only: ${remedy}. An Agent with fromAiSdk(model) runs it as it is.`,
      { data: { middleware: name } },
    );
  for (const [member, remedy] of Object.entries(OUTSIDE)) {
    const value = middleware[member as keyof Middleware];
    if (value !== undefined && !(Array.isArray(value) && value.length === 0))
      throw fail(`\`${member}\``, remedy!);
  }
  // Every call is a run here, so a run cell begins again with each. That is fine for what is only remembered, such as
  // the choice of `toolSelector`, but a limit that counts in one would never be reached.
  const protects = middleware.traits?.includes('protects') === true;
  const lasting = middleware.state?.find(
    ({ scope, durable }) => durable !== false && (scope === 'session' || (scope === 'run' && protects)),
  );
  if (lasting)
    throw fail(
      `the ${lasting.scope} cell "${lasting.name}"`,
      `each call is a ${lasting.scope} of its own, so the cell would begin again with every call`,
    );
  if (middleware.seams?.some((seam) => seam !== 'model'))
    throw fail(`\`seams: ${JSON.stringify(middleware.seams)}\``, "give it seams: ['model']");
  if (middleware.suspends) throw fail('`suspends`', 'nobody can be asked there');
  const { guard } = middleware;
  if (guard?.on.includes('tool-result') && !guard.on.includes('request'))
    throw fail(
      "a guard on 'tool-result'",
      "results of tools come with the next request, so put 'request' in its `on`",
    );
}
