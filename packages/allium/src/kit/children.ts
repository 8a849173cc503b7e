/** Sub-agents: running an agent inside a tool call. */

export { childFailure, childResult, forwardChildEvent } from './child-result.js';
export { type ChildOutcome, type ChildRun, runChild } from './child-run.js';
export { childToolTags } from './child-tags.js';
