/** Sub-agents: running an agent inside a tool call. */

export { type ChildOutcome, type ChildRun, runChild } from '../kernel/agent/child-run.js';
export { childFailure, childResult, forwardChildEvent } from './child-result.js';
export { childToolTags } from './child-tags.js';
