/** The one conversation of the combinations, and the situations in which something happens in it. */
import {
  type Message,
  type Model,
  type ModelPart,
  type ModelRequest,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolMessage,
  tool,
} from 'allium';

export const OUTCOMES = [
  'success',
  'transient error',
  'permanent error',
  'StopRun',
  'suspension',
  'abort',
  'mid-stream cut',
] as const;

export interface Situation {
  readonly outcome: (typeof OUTCOMES)[number];
  /** Where it happens: in the second model call, in the tool `act` of the first turn, or while somebody waits. */
  readonly at: 'nowhere' | 'model' | 'tool' | 'wait';
}

export const SITUATIONS: readonly Situation[] = [
  { outcome: 'success', at: 'nowhere' },
  { outcome: 'transient error', at: 'model' },
  { outcome: 'transient error', at: 'tool' },
  { outcome: 'permanent error', at: 'model' },
  { outcome: 'permanent error', at: 'tool' },
  { outcome: 'StopRun', at: 'model' },
  { outcome: 'StopRun', at: 'tool' },
  { outcome: 'suspension', at: 'tool' },
  { outcome: 'abort', at: 'model' },
  { outcome: 'abort', at: 'tool' },
  { outcome: 'abort', at: 'wait' },
  { outcome: 'mid-stream cut', at: 'model' },
];

/** Another one for each situation, so that a recording of one is none of another. */
export function inputOf({ outcome, at }: Situation): string {
  return `Add one and two. Expected: ${outcome}, ${at}.`;
}

/** What the user says: something long and of the past, then what it is about. */
export function saidIn(situation: Situation): readonly string[] {
  return [EARLIER, inputOf(situation)];
}

const EARLIER = 'What was before does not matter any more. '.repeat(20);

export const FINAL = '{"sum":3}';

/** Names of the tools of the first turn, in the order they are called. */
export const CALLS = ['add', 'read', 'act', 'look'] as const;

/** What happens during a run, and what was seen of it from inside. */
export interface Trouble {
  readonly situation: Situation;
  /** While it is armed, the situation comes about. */
  armed: boolean;
  /** What was thrown, if anything. */
  thrown: unknown;
  /** Calls of models, the spare one included. */
  modelCalls: number;
  /** Executions of `act`. */
  acts: number;
  /** Work under way that no time has to pass for. */
  working: number;
  readonly requests: ModelRequest[];
}

export function trouble(situation: Situation): Trouble {
  return { situation, armed: true, thrown: undefined, modelCalls: 0, acts: 0, working: 0, requests: [] };
}

/** Calls the four tools, and those of middleware, in the first turn and answers in the second, where something may go wrong. */
export function conversationModel(now: (request: ModelRequest) => Trouble): Model {
  return {
    provider: 'test',
    id: 'pairs',
    async *stream(request, { signal }) {
      const seen = now(request);
      seen.modelCalls++;
      const { messages, tools, systemPrompt, settings } = request;
      seen.requests.push({ messages: [...messages], tools, systemPrompt, settings });
      if (!request.messages.some(({ role }) => role === 'tool')) return yield* firstTurn(seen, request);
      if (seen.armed) yield* mishap(seen, signal);
      yield { type: 'text', text: FINAL.slice(0, 4) };
      await tick(seen);
      yield { type: 'text', text: FINAL.slice(4) };
      yield finish('stop');
    },
  };
}

/** Answers what the other model would; fails where that fails for good. */
export function spareModel(now: () => Trouble): Model {
  return {
    provider: 'test',
    id: 'spare',
    async *stream() {
      const seen = now();
      seen.modelCalls++;
      if (seen.armed && seen.situation.outcome === 'permanent error') throw permanent();
      yield { type: 'text', text: FINAL };
      yield finish('stop');
    },
  };
}

async function* firstTurn(seen: Trouble, { tools }: ModelRequest): AsyncGenerator<ModelPart> {
  yield { type: 'text', text: 'Let me ' };
  await tick(seen);
  yield { type: 'text', text: 'see.' };
  const there = new Set(tools.map(({ name }) => name));
  const args = { add: { a: 1, b: 2 }, read: { path: 'no\0where' }, act: seen.situation, look: {} };
  for (const name of CALLS) {
    const deferred = !there.has(name) && there.has('deferred_tool_call');
    yield deferred
      ? call(name, 'deferred_tool_call', { tool_name: name, arguments: args[name] })
      : call(name, name, args[name]);
  }
  for (const [name, own] of Object.entries(OWN_TOOLS)) if (there.has(name)) yield call(name, name, own);
  yield finish('tool-calls');
}

/** Tools that middleware bring: where they are, they are called, too. */
const OWN_TOOLS: Readonly<Record<string, object>> = {
  read_skill: { name: 'adding' },
  subagent: { name: 'helper', task: 'Help.', prompt: 'Help with the sum.' },
  write_todos: { todos: [{ content: 'Add', status: 'completed' }] },
};

function call(id: string, name: string, args: object): ModelPart {
  return { type: 'tool-call', id: `call-${id}`, name, arguments: JSON.stringify(args) };
}

/** The result of a call of the first turn. By its id: the call may have been made by way of another tool. */
export function answerTo(name: (typeof CALLS)[number], history: readonly Message[]): ToolMessage | undefined {
  const isIt = (one: Message): one is ToolMessage => one.role === 'tool' && one.toolCallId === `call-${name}`;
  return history.find(isIt);
}

async function* mishap(seen: Trouble, signal: AbortSignal): AsyncGenerator<ModelPart> {
  const { outcome, at } = seen.situation;
  if (at === 'tool' || at === 'nowhere') return;
  if (outcome === 'mid-stream cut' || outcome === 'abort') yield { type: 'text', text: 'Half an ans' };
  if (outcome === 'abort' && at === 'model') await untilAborted(signal);
  if (outcome === 'permanent error') throw thrown(seen, permanent());
  // It passes: the next call is answered. While somebody waits to be aborted, it does not.
  if (at === 'model') seen.armed = false;
  throw thrown(seen, transient());
}

export function conversationTools(now: (ctx: ToolContext) => Trouble): readonly Tool[] {
  return [
    tool({ name: 'add', description: 'Adds.', input, execute: ({ a, b }) => Number(a) + Number(b) }),
    tool({ name: 'read', description: 'Reads.', input, execute: () => 'read' }),
    tool({
      name: 'act',
      description: 'Does what the situation asks for.',
      input,
      async execute(_, ctx) {
        const seen = now(ctx);
        seen.acts++;
        const { outcome, at } = seen.situation;
        if (at !== 'tool' || !seen.armed) return 'acted';
        if (outcome === 'StopRun') ctx.stop('stopped', 'act stops');
        if (outcome === 'suspension') return (await ctx.suspend({ title: 'May I?' })) && 'acted';
        if (outcome === 'abort') return untilAborted(ctx.signal);
        if (outcome === 'permanent error') throw thrown(seen, permanent());
        seen.armed = false;
        throw thrown(seen, transient());
      },
    }),
    tool({
      name: 'look',
      description: 'Looks around.',
      input,
      async execute(_, ctx) {
        await tick(now(ctx));
        return 'Far away. '.repeat(30);
      },
    }),
    tool({ name: 'rest', description: 'Is never called.', input, execute: () => 'rested' }),
  ];
}

/** Takes any object. By hand, for thousands of agents are made. */
const input: StandardSchema<Record<string, unknown>> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({ value: value as Record<string, unknown> }),
    jsonSchema: { input: () => ({ type: 'object' }) },
  },
};

function thrown(seen: Trouble, error: Error): Error {
  seen.thrown ??= error;
  return error;
}

function transient(): Error {
  return Object.assign(new Error('Overloaded.'), { status: 503 });
}

function permanent(): Error {
  return Object.assign(new Error('Bad request.'), { status: 400 });
}

function finish(reason: 'stop' | 'tool-calls'): ModelPart {
  return { type: 'finish', reason, usage: { inputTokens: 10, outputTokens: 5 } };
}

async function tick(seen: Trouble): Promise<void> {
  seen.working++;
  await new Promise((resolve) => setImmediate(resolve));
  seen.working--;
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
