/** What is said to the model. */
import { isUnfinished, rendered, type Todo } from './todos.js';

export const SYSTEM_PROMPT = `Keep a todo list with \`write_todos\` for work of three steps or more; leave it alone for anything shorter.
- Write the list before you begin. Each item is one step with a result that can be checked.
- Exactly one item is in_progress until all are completed. Set an item to completed as soon as it is done, and the next one to in_progress in the same call.
- Every call replaces the whole list, so call \`write_todos\` once per answer. Add, reword and drop items as you learn more.
- Before your final answer, every item is completed or has been dropped from the list.`;

export const TOOL_DESCRIPTION =
  'Replaces your todo list for this conversation. Send the whole list each time, in order: each item has a content and a status of pending, in_progress or completed, and exactly one is in_progress until all are completed.';

export function view(todos: readonly Todo[]): string {
  return `Your todo list as it stands ([x] completed, [>] in progress, [ ] pending):\n${rendered(todos)}`;
}

export function written(todos: readonly Todo[]): string {
  const left = todos.filter(isUnfinished).length;
  return todos.length === 0
    ? 'The list is empty.'
    : `Written: ${todos.length - left} of ${todos.length} done.`;
}

export const PARALLEL = 'Not written: `write_todos` was called more than once in one answer.';

export function parallelNote(count: number): string {
  return `You called \`write_todos\` ${count} times in one answer. Each call replaces the whole list, so none of them was carried out and the list is as it was. Call it once, with the whole list.`;
}

export function invalidNote(problem: string): string {
  return `Your call of \`write_todos\` was not carried out and the list is as it was. ${problem} Call it again with the whole list.`;
}

/** For a call that somebody may have repaired: only its result shows whether it was carried out. */
export function doubtfulNote(problem: string): string {
  return `Your call of \`write_todos\` was wrong as you wrote it. ${problem} Unless its result says that it was written, call it again with the whole list.`;
}

export function reminder(turns: number, todos: readonly Todo[]): string {
  return `You have not updated your todo list for ${turns} turns. If it is out of date, bring it up to date with \`write_todos\`; otherwise go on.\n${open(todos)}`;
}

export function correction(todos: readonly Todo[]): string {
  return `You answered, but your todo list has unfinished items. Do what is left, or bring the list up to date with \`write_todos\` if it is done or no longer needed; then answer.\n${open(todos)}`;
}

export function blocked(todos: readonly Todo[]): string {
  return `Your todo list is still unfinished, and you are not to work on it any more in this run. Call no tool. Answer in text: say what was done, what was not, and why.\n${open(todos)}`;
}

/** Why a run was stopped, for readers of its result. */
export function gaveUp(todos: readonly Todo[]): string {
  return `The model answered three times with its todo list unfinished, and was told to say what is left. ${leftIn(todos)}`;
}

export function keptCalling(times: number, todos: readonly Todo[]): string {
  return `The model was told ${times + 1} times to call no more tools and to answer, and went on calling them. ${leftIn(todos)}`;
}

function leftIn(todos: readonly Todo[]): string {
  const left = todos.filter(isUnfinished);
  if (left.length === 0) return 'Nothing is left now.';
  return `Unfinished: ${left.map(({ content }) => JSON.stringify(content)).join(', ')}.`;
}

function open(todos: readonly Todo[]): string {
  return `Unfinished:\n${rendered(todos.filter(isUnfinished))}`;
}
