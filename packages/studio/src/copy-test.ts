/** A run as a test: a cassette of its model and tool calls, and a test that replays it. */
import {
  Agent,
  defineMiddleware,
  type Entry,
  type Message,
  type Middleware,
  type Model,
  type Tool,
  textOf,
  tool,
  toolCallsOf,
  toolResult,
  type UserMessage,
} from 'allium';
import { record } from 'allium/middleware/record';
import { memoryStore } from 'allium/stores/memory';

export type TestRunner = 'node' | 'vitest';

export class NothingToTest extends Error {
  override readonly name = 'NothingToTest';
}

/** What a test needs from a run. */
interface Script {
  readonly before: readonly Message[];
  readonly input: readonly UserMessage[];
  readonly answers: readonly (Message & { role: 'assistant' })[];
  readonly results: ReadonlyMap<string, Message & { role: 'tool' }>;
  /** Messages that came in after a turn, by the number of that turn. */
  readonly came: Readonly<Record<number, readonly UserMessage[]>>;
  readonly toolNames: readonly string[];
}

export async function testOf(
  entries: readonly Entry[],
  runId: string,
  runner: TestRunner,
): Promise<{ code: string; file: string }> {
  const script = scriptOf(entries, runId);
  const cassette: string[] = [];
  const agent = new Agent({
    ...shapeOf(script),
    model: playedModel(script),
    tools: script.toolNames.map((name) => playedTool(name, script)),
    middleware: [cameIn(script), record({ to: cassette })],
    store: memoryStore(),
  });
  await agent.run([...script.before, ...script.input]);
  return { code: codeOf(script, cassette, runner), file: `run.test.${runner === 'node' ? 'mjs' : 'ts'}` };
}

function scriptOf(entries: readonly Entry[], runId: string): Script {
  const before: Message[] = [];
  const input: UserMessage[] = [];
  const answers: (Message & { role: 'assistant' })[] = [];
  const results = new Map<string, Message & { role: 'tool' }>();
  const came: Record<number, UserMessage[]> = {};
  for (const entry of entries) {
    if (entry.type !== 'message' && entry.type !== 'tool_finished') continue;
    const { message } = entry;
    if (entry.runId !== runId) {
      if (answers.length === 0 && input.length === 0) before.push(message);
    } else if (message.role === 'tool') results.set(message.toolCallId, message);
    else if (message.role === 'assistant') {
      if (entry.type === 'message' && entry.seeded) before.push(message);
      else answers.push(message);
    } else if (answers.length === 0) input.push(message);
    else came[answers.length] = [...(came[answers.length] ?? []), message];
  }
  // A turn whose calls have no result yet has not ended.
  const whole = answers.findIndex((answer) => toolCallsOf(answer).some(({ id }) => !results.has(id)));
  const ended = whole < 0 ? answers : answers.slice(0, whole);
  if (ended.length === 0)
    throw new NothingToTest('No turn of this run has ended, so there is nothing to test yet.');
  delete came[ended.length];
  const toolNames = [
    ...new Set(ended.flatMap((answer) => toolCallsOf(answer).map(({ name }) => name))),
  ].sort();
  return { before, input, answers: ended, results, came, toolNames };
}

/** The agent of the test: it takes nothing from the real one but the names of models and tools. */
function shapeOf({ answers }: Script) {
  return { name: 'recorded', limits: { turns: answers.length } };
}

function modelOf({ answers }: Script): { provider: string; id: string } {
  const [provider = 'recorded', ...rest] = (answers[0]?.model ?? 'recorded/model').split('/');
  return { provider, id: rest.join('/') || 'model' };
}

function playedModel(script: Script): Model {
  let turn = 0;
  return {
    ...modelOf(script),
    *stream() {
      const answer = script.answers[turn++]!;
      for (const part of answer.content) yield part;
      const reason = answer.stopReason === 'aborted' ? 'stop' : answer.stopReason;
      yield { type: 'finish', reason, ...(answer.usage && { usage: answer.usage }) };
    },
  };
}

function playedTool(name: string, { results }: Script): Tool {
  return tool({
    name,
    description: '',
    ...ANYTHING,
    execute(_args, { toolCall }) {
      const { content = [], isError = false } = results.get(toolCall.id) ?? {};
      return toolResult({ content, isError });
    },
  });
}

const ANYTHING = {
  input: {
    '~standard': { version: 1 as const, vendor: 'recorded', validate: (value: unknown) => ({ value }) },
  },
  toJsonSchema: () => ({ type: 'object' }),
};

/** Messages that people or middleware sent meanwhile come in again, after the same turn. */
function cameIn({ came }: Script): Middleware {
  return defineMiddleware({
    name: 'came-in',
    afterModelResponse(response, { turn }) {
      const messages = came[turn];
      if (!messages) return undefined;
      const goesOn = toolCallsOf(response).length === 0;
      return { injectMessages: messages, ...(goesOn && { decision: 'loop_to_model' as const }) };
    },
  });
}

/** A conversation as a test shows it: a line for each message. */
function lineOf(message: Message): string {
  const calls = message.role === 'assistant' ? toolCallsOf(message) : [];
  const who =
    message.role === 'tool' ? `${message.toolName}${message.isError ? ' failed' : ''}` : message.role;
  return [`${who}: ${textOf(message)}`, ...calls.map((one) => `calls ${one.name} ${one.arguments}`)].join(
    '\n',
  );
}

function expectedLines({ input, answers, results, came }: Script): readonly string[] {
  return [
    ...input,
    ...answers.flatMap((answer, index) => [
      answer,
      ...toolCallsOf(answer).map(({ id }) => results.get(id)!),
      ...(came[index + 1] ?? []),
    ]),
  ].map(lineOf);
}

function codeOf(script: Script, cassette: readonly string[], runner: TestRunner): string {
  const json = (value: unknown, indent = '') =>
    (JSON.stringify(value, undefined, 2) ?? 'undefined').replaceAll('\n', `\n${indent}`);
  const lines = (texts: readonly string[]) =>
    `[\n${texts.map((text) => `  ${JSON.stringify(text)},\n`).join('')}]`;
  const { provider, id } = modelOf(script);
  const node = runner === 'node';
  const came = Object.keys(script.came).length > 0;
  return `// A recorded run: neither models nor tools are called.
${node ? "import assert from 'node:assert/strict';\nimport { test } from 'node:test';" : "import { expect, test } from 'vitest';"}
import { Agent, ${came ? 'defineMiddleware, ' : ''}textOf, tool, toolCallsOf } from 'allium';
import { replay } from 'allium/middleware/replay';

const cassette = ${lines(cassette)};

const input = ${json([...script.before, ...script.input].map(withoutId))};

const expected = ${lines(expectedLines(script))};

// Recorded answers stand in for them; put your own here to test them with the same answers.
const model = {
  provider: ${JSON.stringify(provider)},
  id: ${JSON.stringify(id)},
  stream() {
    throw new Error('This call was not recorded.');
  },
};
const anything = { '~standard': { version: 1${node ? '' : ' as const'}, vendor: 'recorded', validate: (value${node ? '' : ': unknown'}) => ({ value }) } };
const tools = ${JSON.stringify(script.toolNames)}.map((name) =>
  tool({
    name,
    description: '',
    input: anything,
    toJsonSchema: () => ({ type: 'object' }),
    execute() {
      throw new Error('This call was not recorded.');
    },
  }),
);
${came ? cameCode(script, json, node) : ''}
function lineOf(message${node ? '' : ': any'}) {
  const calls = message.role === 'assistant' ? toolCallsOf(message) : [];
  const who = message.role === 'tool' ? \`\${message.toolName}\${message.isError ? ' failed' : ''}\` : message.role;
  return [\`\${who}: \${textOf(message)}\`, ...calls.map((one) => \`calls \${one.name} \${one.arguments}\`)].join('\\n');
}

test(${JSON.stringify(`the run goes as it was recorded: ${titleOf(script)}`)}, async () => {
  const agent = new Agent({
    name: 'recorded',
    model,
    tools,
    limits: { turns: ${script.answers.length} },
    middleware: [${came ? 'cameIn, ' : ''}replay({ from: cassette })],
  });
  const { messages } = await agent.run(input${node ? '' : ' as any'});
  const lines = messages.slice(${script.before.length}).map(lineOf);
  ${node ? 'assert.deepEqual(lines, expected);' : 'expect(lines).toEqual(expected);'}
});
`;
}

function cameCode({ came }: Script, json: (value: unknown) => string, node: boolean): string {
  const plain = Object.fromEntries(Object.entries(came).map(([turn, list]) => [turn, list.map(withoutId)]));
  return `
// What people and middleware said meanwhile, by the turn it came after.
const came${node ? '' : ': any'} = ${json(plain)};
const cameIn = defineMiddleware({
  name: 'came-in',
  afterModelResponse(response, { turn }) {
    if (!came[turn]) return undefined;
    const goesOn = toolCallsOf(response).length === 0;
    return { injectMessages: came[turn], ...(goesOn && { decision: 'loop_to_model'${node ? '' : ' as const'} }) };
  },
});
`;
}

function withoutId({ id: _, ...message }: Message): object {
  return { id: '', ...message };
}

function titleOf({ input }: Script): string {
  return textOf(input[0] ?? { content: [] })
    .slice(0, 60)
    .replace(/\s+/g, ' ');
}
