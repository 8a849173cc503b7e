/** Which situations a middleware can notice: found in its hooks, so that nothing has to be declared. */
import type { Middleware, Seam } from 'allium';
import type { Situation } from './conversation.js';

type Hooks = readonly (keyof Middleware)[];

/** How a run ends is the business of these, wherever it went wrong. */
const OF_RUNS: Hooks = ['wrapRun', 'beforeRun', 'afterRun', 'onRunEnd', 'guard'];
const OF_MODELS: Hooks = [
  ...(['wrapModel', 'beforeModel', 'afterModel', 'afterModelResponse', 'extraLlmCalls'] as const),
  ...(['transformContext', 'transformSystemPrompt', 'convertToLlm'] as const),
];
const OF_TOOLS: Hooks = [
  ...(['wrapTool', 'beforeTool', 'afterTool', 'beforeToolCall', 'afterToolCall'] as const),
  ...(['resolveToolCall', 'tools', 'suspends'] as const),
];

export function isReached(middleware: Middleware, { at }: Situation): boolean {
  if (at === 'nowhere') return true;
  const [hooks, seam] = at === 'tool' ? [OF_TOOLS, 'tool' as const] : [OF_MODELS, 'model' as const];
  const has = (hook: keyof Middleware): boolean => middleware[hook] !== undefined;
  return OF_RUNS.some(has) || hooks.some(has) || isLayer(middleware, ['run', seam]);
}

/** Does a hook for several seams stand at one of these? */
function isLayer({ process, onError, seams }: Middleware, at: readonly Seam[]): boolean {
  if (!process && !onError) return false;
  return !seams || seams.some((seam) => at.includes(seam));
}
