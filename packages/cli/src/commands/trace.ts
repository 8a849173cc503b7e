/** `allium trace`: shows what a run did, as a tree, from the journal. */
import { type Entry, readTrace, terminalText } from 'allium';
import { UsageError } from '../outcome.js';
import { type AddCommand, findSession, type Shell, tell, tellJson, withStore } from '../shell.js';
import { type TraceNode, traceOf, treeLines } from '../view/trace.js';

export const addTrace: AddCommand = (program, shell) => {
  program
    .command('trace')
    .summary('show the runs of a session as a tree')
    .description(
      'Shows what happened in the runs of a session: turns, tool calls, questions and answers, tokens and times, as the ' +
        'journal has it. Without a session: the one that was used last.',
    )
    .argument('[session]')
    .option('--run <id>', 'show only this run')
    .option('--last', 'show only the last run')
    .option('--state', 'also show what middleware remembered')
    .option('--message <id>', 'the story of one message; "all" for each')
    .option('--json', 'print the tree as JSON')
    .action((session: string | undefined, options: Options) => trace(shell, session, options));
};

interface Options {
  readonly run?: string;
  readonly last?: boolean;
  readonly state?: boolean;
  readonly json?: boolean;
  readonly message?: string;
}

async function trace(shell: Shell, wanted: string | undefined, options: Options): Promise<void> {
  await withStore(shell, async (store) => {
    const id = await findSession(shell, store, wanted);
    const entries = await store.read(id, 1);
    if (options.message !== undefined) return tellStory(shell, id, entries, options.message);
    const whole = traceOf(id, entries, { state: options.state === true });
    const tree = { ...whole, children: chosen(whole.children, options) };
    if (options.json) return tellJson(shell, tree);
    for (const line of treeLines(tree, shell.io.out)) tell(shell, line);
  });
}

/** The story of a message comes from the run that added it, or from the last traced one before it. */
function tellStory(shell: Shell, id: string, entries: readonly Entry[], wanted: string): void {
  const runOf = new Map<string, string>();
  for (const entry of entries)
    if (entry.type === 'message' || entry.type === 'tool_finished') runOf.set(entry.message.id, entry.runId);
  const known = [...runOf.keys()];
  const chosen =
    wanted === 'all' ? known : known.filter((one) => one === wanted || one.endsWith(`.${wanted}`));
  if (chosen.length === 0)
    throw new UsageError(`There is no message "${wanted}" in it. Messages: ${known.join(', ')}`);
  for (const message of chosen) {
    const story = readTrace(id, entries, runOf.get(message));
    if (!story)
      throw new UsageError(
        `The run of message "${message}" was not traced. Set trace = "changes" for the agent, and run it again.`,
      );
    for (const line of story.explain(message).split('\n')) tell(shell, terminalText(line));
  }
}

function chosen(runs: readonly TraceNode[], { run, last }: Options): readonly TraceNode[] {
  if (last) return runs.slice(-1);
  if (run === undefined) return runs;
  const found = runs.filter(({ id }) => id?.startsWith(run));
  if (found.length === 0)
    throw new UsageError(`There is no run "${run}" in it. Runs: ${runs.map(({ id }) => id).join(', ')}`);
  return found;
}
