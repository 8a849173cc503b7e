/** Sub-agents: running an agent inside a tool call. */
export {
  type ChildOutcome,
  type ChildRun,
  childFailure,
  childResult,
  forward as forwardChildEvent,
  runChild,
} from '../kernel/agent/child-run.js';
export { agentTags as childToolTags } from '../kernel/protocol/child-tags.js';
