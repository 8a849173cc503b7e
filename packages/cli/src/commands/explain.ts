/** `allium explain`: the plan that a config makes, before anything runs. */
import { modelName } from 'allium';
import { type AddCommand, type Opened, type Shell, tell, tellJson, withAgent } from '../shell.js';

export const addExplain: AddCommand = (program, shell) => {
  program
    .command('explain')
    .summary('print the plan: who runs where, and what is dangerous about it')
    .description(
      'Prints the plan of the config: the layers at each seam, rules, guards, tools, state and hazards.',
    )
    .option('--json', 'print it as JSON')
    .action((options: { json?: boolean }) => explain(shell, options.json === true));
};

async function explain(shell: Shell, json: boolean): Promise<void> {
  await withAgent(shell, {}, async (opened) => {
    const { agent, loaded, warnings, mcp } = opened;
    // The plan shows what servers say about their tools; one that doesn't answer is shown as not connected.
    await Promise.allSettled(mcp.map((server) => server.connect()));
    if (!json) return tell(shell, planText(opened));
    const { toString: _, ...plan } = agent.explain();
    tellJson(shell, { file: loaded.file, model: modelName(agent.model), ...plan, warnings });
  });
}

/** The plan, with where it came from. */
export function planText({ agent, loaded, warnings }: Pick<Opened, 'agent' | 'loaded' | 'warnings'>): string {
  const plan = `Config: ${loaded.file}\nModel: ${modelName(agent.model)}\n${agent.explain()}`;
  return [plan, ...warnings.map((warning) => `Warning: ${warning}`)].join('\n');
}
