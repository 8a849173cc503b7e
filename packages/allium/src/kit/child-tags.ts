/** The tags that mark tools which run agents, for `explain()`. */
export const RUNS_AGENTS = 'runs-agents';
export const UNGUARDED_AGENTS = 'runs-unguarded-agents';

/** The `tags` of a tool that runs agents, so that `explain()` recognises it. */
export function childToolTags(inheritGuards: boolean): readonly string[] {
  return [inheritGuards ? RUNS_AGENTS : UNGUARDED_AGENTS];
}
