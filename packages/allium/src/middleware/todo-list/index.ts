/** Gives the model a todo list and keeps it to it: a tool, a view of the list in every request, and guards. */

import {
  defineMiddleware,
  defineState,
  type Middleware,
  type StateAccess,
  syntheticUserMessage,
  type Tool,
  tool,
  toolCallsOf,
  toolResult,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { afterWriting, CLEAN, type GuardState, step } from './guard.js';
import * as texts from './texts.js';
import { emptying, type Todo, type TodosInput, todosSchema } from './todos.js';

export type { Todo, TodoStatus } from './todos.js';

export const OPTIONS = {
  /** Added at the end of the system prompt; empty text for nothing. @default how and when to keep a list */
  systemPrompt: kinds.withDefault(kinds.text, texts.SYSTEM_PROMPT),
  /** How `write_todos` is described to the model. @default what it takes */
  toolDescription: kinds.withDefault(kinds.text, texts.TOOL_DESCRIPTION),
  ...named('todo-list'),
} satisfies Fields;

export interface TodoListOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const NAME = 'todo-list';
const TOOL = 'write_todos';

/**
 * A todo list per session. The model writes it with `write_todos` and sees it in every request. A model that forgets
 * its list is reminded, and one that wants to end with unfinished items is sent back, a bounded number of times.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [todoList()] });
 */
export function todoList(options: TodoListOptions = {}): Middleware {
  const { systemPrompt, toolDescription, name, madeWith } = readOptions('todoList', OPTIONS, options);
  const cells = makeCells();
  const write = writeTodos(toolDescription, cells);

  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    tools: [write],
    state: [cells.todos, cells.watch, cells.episode],
    transformSystemPrompt(prompt) {
      if (systemPrompt === '') return prompt;
      return prompt === '' ? systemPrompt : `${prompt}\n\n${systemPrompt}`;
    },
    transformContext(messages, ctx) {
      const todos = ctx.state.get(cells.todos);
      if (todos.length === 0) return messages;
      return [...messages, syntheticUserMessage(texts.view(todos), { source: NAME })];
    },
    // Not in the tool: `replay` answers in its place, and it is given originals where the model has placeholders.
    afterTool(ctx) {
      if (!ctx.is(write) || ctx.isError) return;
      const before = ctx.state.get(cells.todos);
      ctx.state.set(cells.todos, ctx.args.todos);
      // The guards saw the call as the model wrote it; it may have been repaired since.
      remember(ctx.state, cells, afterWriting(recall(ctx.state, cells), before, ctx.args.todos));
    },
    afterModelResponse(response, ctx) {
      // The provider ended this answer and with it the run, not the model.
      if (response.stopReason === 'content-filter') return undefined;
      const calls = toolCallsOf(response);
      const { state, note, decision, why } = step(recall(ctx.state, cells), {
        calls: calls.length,
        writes: calls.filter(({ name }) => name === TOOL).map((call) => call.arguments),
        todos: ctx.state.get(cells.todos),
        repairable: ctx.plan.rules.resolveToolCall.length > 0,
      });
      remember(ctx.state, cells, state);
      if (note === undefined && decision === undefined) return undefined;
      return {
        ...(note !== undefined && { injectMessages: [syntheticUserMessage(note, { source: NAME })] }),
        ...(decision && { decision }),
        ...(why !== undefined && { why }),
      };
    },
  });
}

type Watch = Pick<GuardState, 'stale' | 'suppressed'>;
type Episode = Pick<GuardState, 'corrections' | 'blocked'>;
type Cells = ReturnType<typeof makeCells>;

function makeCells() {
  const { stale, suppressed, corrections, blocked } = CLEAN;
  return {
    todos: defineState<readonly Todo[]>({ name: 'todos', scope: 'session', initial: [] }),
    watch: defineState<Watch>({ name: 'watch', scope: 'session', initial: { stale, suppressed } }),
    // How a run ends only matters for that run: a block left behind by an abort says nothing about the next one.
    episode: defineState<Episode>({ name: 'episode', scope: 'run', initial: { corrections, blocked } }),
  };
}

function recall(state: StateAccess, { watch, episode }: Cells): GuardState {
  return { ...state.get(watch), ...state.get(episode) };
}

/** Writes what has changed and nothing else: most responses change nothing. */
function remember(state: StateAccess, cells: Cells, next: GuardState): void {
  const { stale, suppressed, corrections, blocked } = next;
  const before = recall(state, cells);
  if (before.stale !== stale || before.suppressed !== suppressed)
    state.set(cells.watch, { stale, suppressed });
  if (before.corrections !== corrections || before.blocked !== blocked)
    state.set(cells.episode, { corrections, blocked });
}

function writeTodos(description: string, { todos }: Cells): Tool<TodosInput> {
  return tool({
    name: TOOL,
    description,
    input: todosSchema,
    idempotent: true,
    execute(_, ctx) {
      // The list goes back to the model, so placeholders stay as they are. The first parameter would have their originals.
      const { args } = ctx;
      // Taken from the message itself: after a resume, some of the calls may have their results already.
      const writes = toolCallsOf(ctx.assistantMessage).filter(({ name }) => name === TOOL).length;
      const before = ctx.state.get(todos);
      const problem = writes > 1 ? texts.PARALLEL : emptying(args.todos, before);
      if (problem !== undefined) return toolResult({ content: problem, isError: true });
      return toolResult({ content: texts.written(args.todos), details: { todos: args.todos } });
    },
  });
}
