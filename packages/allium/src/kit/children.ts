/** Sub-agents: running an agent inside a tool call. */

export {
  type ChildOutcome,
  childFailure,
  childResult,
  forwardChildEvent,
} from '../kernel/agent/child-result.js';
export { type ChildRun, runChild } from '../kernel/agent/child-run.js';
export { childToolTags } from '../kernel/agent/child-tags.js';
