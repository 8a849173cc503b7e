/** What a list of todos looks like, what is wrong with one, and how it is shown to the model. */

import type { JsonSchema, SchemaIssue, StandardSchema } from '../../index.js';

export type TodoStatus = 'pending' | 'in_progress' | 'completed';

/** One step of the plan. */
export interface Todo {
  readonly content: string;
  readonly status: TodoStatus;
}

/** What `write_todos` takes. */
export interface TodosInput {
  readonly todos: readonly Todo[];
}

const STATUSES: readonly unknown[] = ['pending', 'in_progress', 'completed'];

const JSON_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    todos: {
      type: 'array',
      description: 'The whole list, in order. It replaces the one before.',
      items: {
        type: 'object',
        properties: {
          content: { type: 'string', minLength: 1, description: 'What is to be done.' },
          status: { type: 'string', enum: STATUSES },
        },
        required: ['content', 'status'],
        additionalProperties: false,
      },
    },
  },
  required: ['todos'],
  additionalProperties: false,
};

/** Everything that can be checked without knowing the list before. */
export const todosSchema: StandardSchema<TodosInput> = {
  '~standard': {
    version: 1,
    vendor: 'allium',
    validate(value) {
      const issues = issuesOf(value);
      if (issues.length > 0) return { issues };
      const { todos } = value as TodosInput;
      return { value: { todos: todos.map(({ content, status }) => ({ content, status })) } };
    },
    jsonSchema: { input: () => JSON_SCHEMA as Record<string, unknown> },
  },
};

/** What is wrong with a list that would replace `before`; undefined if nothing is. */
export function problemOf(value: unknown, before: readonly Todo[]): string | undefined {
  const issues = issuesOf(value);
  if (issues.length > 0) return issues.map(({ message }) => message).join(' ');
  return emptying((value as TodosInput).todos, before);
}

/** A plan with work left may be changed, but not dropped. */
export function emptying(todos: readonly Todo[], before: readonly Todo[]): string | undefined {
  const left = before.filter(isUnfinished).length;
  if (todos.length > 0 || left === 0) return undefined;
  return `The list may not be emptied while ${left} of its items ${left === 1 ? 'is' : 'are'} unfinished. Set to completed what is done or no longer needed.`;
}

export function isUnfinished({ status }: Todo): boolean {
  return status !== 'completed';
}

/** One line per item. */
export function rendered(todos: readonly Todo[]): string {
  return todos
    .map(({ content, status }) => `${MARKS[status]} ${content.replace(/\s+/g, ' ').trim()}`)
    .join('\n');
}

const MARKS: Record<TodoStatus, string> = {
  pending: '[ ]',
  in_progress: '[>]',
  completed: '[x]',
};

function issuesOf(value: unknown): SchemaIssue[] {
  const todos = (value as Partial<TodosInput> | null | undefined)?.todos as unknown;
  if (!Array.isArray(todos)) return [{ message: '`todos` must be a list of { content, status }.' }];
  const issues = todos.flatMap((item, index) => itemIssues(item, index + 1));
  if (issues.length > 0) return issues;
  const list = todos as readonly Todo[];
  const current = list.filter(({ status }) => status === 'in_progress').length;
  if (current === 1 || !list.some(isUnfinished)) return [];
  return [
    {
      message: `Exactly one item must be in_progress until all are completed, but ${current === 0 ? 'none is' : `${current} are`}.`,
    },
  ];
}

function itemIssues(item: unknown, number: number): SchemaIssue[] {
  const { content, status } = (item ?? {}) as Partial<Record<keyof Todo, unknown>>;
  const issues: SchemaIssue[] = [];
  if (typeof content !== 'string' || content.trim() === '')
    issues.push({ message: `Item ${number} has no content: say what is to be done.` });
  if (!STATUSES.includes(status))
    issues.push({ message: `The status of item ${number} must be pending, in_progress or completed.` });
  return issues;
}
