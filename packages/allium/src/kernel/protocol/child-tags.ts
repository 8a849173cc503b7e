/** The tags of tools that run agents: what `explain()` knows them by. */
export const RUNS_AGENTS = 'runs-agents';
export const UNGUARDED_AGENTS = 'runs-unguarded-agents';

/** The `tags` of a tool that runs agents: `explain()` knows such tools by them. */
export function agentTags(inheritGuards: boolean): readonly string[] {
  return [inheritGuards ? RUNS_AGENTS : UNGUARDED_AGENTS];
}
