/** Which tools a message means, and which calls come next. */
import type { ModelRequest, ToolCall, ToolSpec } from '../../index.js';
import { type Filled, fill } from './arguments.js';
import { type Task, taskOf } from './task.js';
import { findValues, type Values } from './values.js';
import { significant, wordsOf } from './words.js';

export interface PlannedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface Plan {
  readonly task: Task;
  /** The calls of this turn: all of one tool. */
  readonly next: readonly PlannedCall[];
  /** They were made before, and failed. */
  readonly again?: boolean;
  /** Tools that were meant but can't be called, with the arguments that weren't found. */
  readonly lacking: readonly { readonly name: string; readonly missing: readonly string[] }[];
}

export function planOf({ messages, tools, settings }: ModelRequest): Plan {
  const task = taskOf(messages);
  const { toolChoice = 'auto' } = settings;
  const lacking: { name: string; missing: readonly string[] }[] = [];
  if (toolChoice === 'none' || tools.length === 0) return { task, next: [], lacking };
  const again = task.failed.filter(({ name }) => tools.some((tool) => tool.name === name));
  if (again.length > 0) return { task, next: again.map(repeated), again: true, lacking };
  const forced = toolChoice !== 'auto' && task.called.size === 0;
  const meant = meantTools(task.text, tools, toolChoice);
  for (const [index, { tool, from }] of meant.entries()) {
    if (task.called.has(tool.name)) continue;
    const clause = { from: index === 0 ? 0 : from, to: meant[index + 1]?.from ?? task.text.length };
    const calls = callsOf(tool, task, findValues(task.text, clause));
    if (calls.missing.length === 0 || forced) return { task, next: calls.next, lacking };
    lacking.push({ name: tool.name, missing: calls.missing });
  }
  return { task, next: [], lacking };
}

function repeated({ name, arguments: json }: ToolCall): PlannedCall {
  return { name, args: JSON.parse(json) };
}

interface Meant {
  readonly tool: ToolSpec;
  /** Where its first word is in the message. */
  readonly from: number;
}

/** In the order of their words in the message. */
function meantTools(text: string, tools: readonly ToolSpec[], choice: unknown): readonly Meant[] {
  const words = wordsOf(text);
  const placeOf = (word: string) => words.find((one) => one.stem === word)?.at;
  if (typeof choice === 'object' && choice !== null) {
    const tool = tools.find(({ name }) => name === (choice as { tool: string }).tool);
    return tool ? [{ tool, from: 0 }] : [];
  }
  let meant = tools.flatMap((tool): Meant[] => {
    const places = significant(tool.name).map(placeOf);
    const from = Math.min(...places.map((place) => place ?? Number.NaN));
    return Number.isNaN(from) ? [] : [{ tool, from }];
  });
  if (meant.length === 0) meant = describedTools(tools, placeOf);
  if (meant.length === 0 && choice === 'required') meant = [{ tool: tools[0]!, from: 0 }];
  return meant.sort((a, b) => a.from - b.from);
}

/** The tools whose descriptions share the most words with the message, and at least two. */
function describedTools(tools: readonly ToolSpec[], placeOf: (word: string) => number | undefined): Meant[] {
  const scored = tools.map((tool) => {
    const places = significant(tool.description)
      .map(placeOf)
      .filter((place) => place !== undefined);
    return { tool, score: places.length, from: Math.min(...places) };
  });
  const most = Math.max(...scored.map(({ score }) => score));
  return most < 2 ? [] : scored.filter(({ score }) => score === most);
}

/** One call; or several, if the tool takes one text and the message has several names for it. */
function callsOf(
  tool: ToolSpec,
  task: Task,
  values: Values,
): { next: PlannedCall[]; missing: readonly string[] } {
  const one = (given: Values): Filled => fill(tool.inputSchema, given, task);
  const first = one(values);
  const next = [{ name: tool.name, args: first.args }];
  const { named } = first;
  const names = named === undefined ? [] : values.names.filter(({ own }) => own);
  if (names.length < 2 || named === undefined || named.only !== true) return { next, missing: first.missing };
  const each = names.map((name) => one({ ...values, names: [name] }));
  // The schema may refuse some of the names, or want several in one call.
  const complete = each.filter(({ missing }) => missing.length === first.missing.length);
  if (complete.length === 0) return { next, missing: first.missing };
  return { next: complete.map(({ args }) => ({ name: tool.name, args })), missing: first.missing };
}
