/** Sub-agents: running an agent inside a tool call. */

export {
  type ChildOutcome,
  childFailure,
  childResult,
  forward as forwardChildEvent,
} from '../kernel/agent/child-result.js';
export { type ChildRun, runChild } from '../kernel/agent/child-run.js';
export { agentTags as childToolTags } from '../kernel/agent/child-tags.js';
