// A long run from a script, with different middleware: what the model is sent at each turn, by kind, in tokens.
// The picture and the table in docs/guide/long-runs.md are made from it.

import { Agent, textOf, tool, userMessage } from 'allium';
import { compaction, contextEditing, historyTruncator, todoList } from 'allium/middleware';
import { chunks, scriptedModel } from 'allium/testing';
import { z } from 'zod';

/**
 * @import { Message, Middleware, Model } from 'allium'
 * @import { Script } from 'allium/testing'
 * @typedef {Parameters<Extract<Script, (...args: never[]) => unknown>>[0]} Request
 *
 * @typedef {'system' | 'tools' | 'pinned' | 'summary' | 'messages' | 'results' | 'todos'} Kind
 *
 * @typedef {object} Sizes What one run came to.
 * @property {Record<Kind, number>[]} turns What the model was sent at each turn; the first is turn 1.
 * @property {number} sent Tokens of all these requests together.
 * @property {number} seen Those of them that were the beginning of the request before: what a provider may have cached.
 * @property {number} calls Calls of the summariser.
 * @property {number} read Tokens that the summariser was sent.
 */

export const TURNS = 500;
/** Of the middleware that have such an option. */
export const MAX_TOKENS = 24_000;

/** In the order in which they stand in a request, as far as they have one. */
export const KINDS = /** @type {const} */ ([
  'system',
  'tools',
  'summary',
  'pinned',
  'messages',
  'results',
  'todos',
]);

/** Four characters are a token: good enough for a picture, and the same with every version of every tokenizer. */
const count = (/** @type {string} */ text) => Math.ceil(text.length / 4);

/**
 * @param {(summaryModel: Model) => Middleware[]} middleware
 * @returns {Promise<Sizes>}
 */
export async function measure(middleware) {
  const summaryModel = scriptedModel([summaryOf], { id: 'summariser', repeat: true });
  const list = middleware(summaryModel);
  const planned = list.some(({ name }) => name === 'todo-list');
  const model = scriptedModel([(request, turn) => answer(request, turn, planned)], { repeat: true });
  const agent = new Agent({ model, systemPrompt, tools, middleware: list, limits: { turns: TURNS + 1 } });
  const { status, turns } = await agent.run([userMessage(task, { pinned: true })]);
  if (status !== 'done' || turns !== TURNS + 1) throw new Error(`Ended as ${status} after ${turns} turns.`);
  const requests = model.requests.slice(0, TURNS);
  const kinds = requests.map(sizesOf);
  return {
    turns: kinds,
    sent: kinds.reduce((sum, kind) => sum + total(kind), 0),
    seen: requests.reduce((sum, request, index) => sum + sameBeginning(requests[index - 1], request), 0),
    calls: summaryModel.requests.length,
    read: summaryModel.requests.reduce((sum, request) => sum + total(sizesOf(request)), 0),
  };
}

/** The lists of middleware that are compared. @type {Record<string, (model: Model) => Middleware[]>} */
export const LISTS = {
  nothing: () => [],
  historyTruncator: () => [historyTruncator({ maxTokens: MAX_TOKENS, tokenCounter: count })],
  contextEditing: () => [editing()],
  compaction: (model) => [compacting(model)],
  'compaction, contextEditing': (model) => [compacting(model), editing()],
  'contextEditing, compaction': (model) => [editing(), compacting(model)],
  'compaction, todoList': (model) => [compacting(model), todoList()],
  'compaction, contextEditing, todoList': (model) => [compacting(model), editing(), todoList()],
};

const editing = () => contextEditing({ clearToolResultsAfterTokens: 12_000, keep: 5, tokenCounter: count });

const compacting = (/** @type {Model} */ summaryModel) =>
  compaction({ summaryModel, maxTokens: MAX_TOKENS, keepTailTokens: 8000, tokenCounter: count });

/** @returns {Record<Kind, number>} */
function sizesOf(/** @type {Request} */ { systemPrompt: prompt, tools: specs, messages }) {
  const sizes = { system: count(prompt), tools: 0, pinned: 0, summary: 0, messages: 0, results: 0, todos: 0 };
  for (const spec of specs) sizes.tools += count(JSON.stringify(spec));
  for (const message of messages) sizes[kindOf(message)] += tokensOf(message);
  return sizes;
}

/** @returns {Kind} */
function kindOf(/** @type {Message} */ { id, role, metadata }) {
  if (metadata?.source === 'compaction') return 'summary';
  // Its reminders are in the history and have an id; the view of the list is in the request only.
  if (metadata?.source === 'todo-list' && id === '') return 'todos';
  if (metadata?.pinned) return 'pinned';
  return role === 'tool' ? 'results' : 'messages';
}

function tokensOf(/** @type {Message} */ { content }) {
  let tokens = 4;
  for (const part of content) {
    if (part.type === 'text') tokens += count(part.text);
    if (part.type === 'tool-call') tokens += count(part.name) + count(part.arguments);
  }
  return tokens;
}

/** @returns {number} */
export function total(/** @type {Record<Kind, number>} */ sizes) {
  return KINDS.reduce((sum, kind) => sum + sizes[kind], 0);
}

/** Tokens up to the first difference. */
function sameBeginning(/** @type {Request | undefined} */ before, /** @type {Request} */ request) {
  if (before?.systemPrompt !== request.systemPrompt) return 0;
  let tokens = total(sizesOf({ ...request, messages: [] }));
  for (const [index, message] of request.messages.entries()) {
    if (!sameContent(before.messages[index], message)) break;
    tokens += tokensOf(message);
  }
  return tokens;
}

/** Messages of a history keep their content; what is put into a request is often made anew. */
function sameContent(/** @type {Message | undefined} */ a, /** @type {Message} */ b) {
  return a?.content === b.content || JSON.stringify(a?.content) === JSON.stringify(b.content);
}

// The script: 25 modules of a program are ported, in five steps of four turns each.

const STEPS = ['read', 'port', 'test', 'document', 'commit'];
const TURNS_OF_STEP = 4;
const MODULES = TURNS / (STEPS.length * TURNS_OF_STEP);

/** The tool each turn of a step calls, by step. */
const CALLS = [
  ['list_files', 'read_file', 'read_file', 'search'],
  ['read_file', 'edit_file', 'edit_file', 'type_check'],
  ['read_file', 'edit_file', 'run_tests', 'run_tests'],
  ['search', 'read_file', 'edit_file', 'type_check'],
  ['run_tests', 'diff', 'commit', 'list_files'],
];

/** Characters that a result has at least and at most. @type {Record<string, [number, number]>} */
const LENGTHS = {
  list_files: [400, 1200],
  read_file: [2400, 7200],
  search: [800, 2400],
  edit_file: [80, 160],
  type_check: [100, 900],
  run_tests: [600, 3600],
  diff: [1200, 4800],
  commit: [60, 120],
};

const placeOf = (/** @type {number} */ turn) => {
  const step = Math.floor((turn - 1) / TURNS_OF_STEP);
  return {
    module: Math.floor(step / STEPS.length),
    step: step % STEPS.length,
    nth: (turn - 1) % TURNS_OF_STEP,
  };
};

/** One turn of the model: a sentence and a call, and its list where it keeps one. It says what it was sent, as models do. */
function answer(/** @type {Request} */ request, /** @type {number} */ turn, /** @type {boolean} */ planned) {
  const usage = { inputTokens: total(sizesOf(request)), outputTokens: 60 };
  if (turn > TURNS) return chunks('All modules are ported.', { type: 'finish', reason: 'stop', usage });
  const { module, step, nth } = placeOf(turn);
  const name = CALLS[step]?.[nth] ?? '';
  const said = `Module ${module + 1}: next I ${STEPS[step]} it, and for that I need ${name.replace('_', ' ')}. What I have seen so far fits the plan, so I go on with the next file of it.`;
  const path = `src/module-${module + 1}/part-${turn}.ts`;
  // The list is written when a step begins, and once more when all is done.
  const writes = planned && (nth === 0 || turn === TURNS);
  return chunks(
    said,
    {
      type: 'tool-call',
      id: `call_${turn}`,
      name,
      arguments: JSON.stringify({ path, reason: `step ${turn}` }),
    },
    ...(writes ? [writeTodos(turn)] : []),
    { type: 'finish', reason: 'tool-calls', usage },
  );
}

function writeTodos(/** @type {number} */ turn) {
  const { module, step } = placeOf(turn);
  const left = MODULES - module - 1;
  const over = turn === TURNS;
  const todos = STEPS.map((name, index) => ({
    content: `${name} module ${module + 1}`,
    status: over || index < step ? 'completed' : index === step ? 'in_progress' : 'pending',
  }));
  if (left > 0) todos.push({ content: `port the other ${left} modules`, status: 'pending' });
  return /** @type {const} */ ({
    type: 'tool-call',
    id: `todos_${turn}`,
    name: 'write_todos',
    arguments: JSON.stringify({ todos }),
  });
}

const WORDS =
  'the value of this field is read once and kept until its owner changes or asks for a new one '.repeat(80);

const tools = Object.entries(LENGTHS).map(([name, [least, most]]) =>
  tool({
    name,
    description: `Does ${name.replace('_', ' ')} in the working copy and returns what came of it as text. Paths are relative to its root; what lies outside of it is refused.`,
    input: z.object({
      path: z.string().describe('Where, relative to the root.'),
      reason: z.string().describe('What it is needed for, in a few words.'),
    }),
    // A length that looks like chance and is the same every time.
    execute: ({ path }) =>
      WORDS.slice(0, least + ((Number.parseInt(path.replace(/\D/g, ''), 10) * 7919) % (most - least))),
  }),
);

const systemPrompt = `You port programs from one language to another. ${'Keep names and behaviour, change nothing that was not asked for, and look before you write. '.repeat(24)}`;

const task = `Port the ${MODULES} modules below src/ to the new language. ${'The public names stay, every test has to pass, and nothing is pushed. '.repeat(16)}`;

/** What the summariser writes: the headings, and a line for each module it has heard of. */
function summaryOf(/** @type {Request} */ { messages }) {
  const heard = [...textOf(/** @type {Message} */ (messages[0])).matchAll(/Module (\d+):/g)].map(([, n]) =>
    Number(n),
  );
  const lines = Array.from(
    { length: Math.max(...heard, 1) },
    (_, index) =>
      `- Module ${index + 1}: read, ported, tested, documented and committed; its names are as they were.`,
  );
  return `## Goal\nPort all modules.\n## Constraints\nPublic names stay. Nothing is pushed.\n## Done\n${lines.join('\n')}\n## Remaining\nThe modules after these.`;
}
