/** pi's agent core, with a stream function in place of a provider. */
import { Agent, agentLoop } from '@mariozechner/pi-agent-core';
import { createAssistantMessageEventStream, Type } from '@mariozechner/pi-ai';
import { timeMany } from '../work/many.mjs';
import { talkingModel, turnOf } from '../work/models.mjs';
import { ARGUMENTS, DESCRIPTION, execute, executed, NAME, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  '`Agent.prompt()`, or `agentLoop()` read with `for await`; validates with TypeBox, the only schema library it takes; the model parses the JSON, as its providers do';

const model = {
  id: 'bench',
  name: 'bench',
  api: 'bench',
  provider: 'bench',
  baseUrl: '',
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1e9,
  maxTokens: 1e9,
};

const tools = [
  {
    name: NAME,
    label: NAME,
    description: DESCRIPTION,
    parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
    async execute(_id, args) {
      return { content: [{ type: 'text', text: JSON.stringify(await execute(args)) }], details: undefined };
    },
  },
];

function emptyAnswer(stopReason) {
  return {
    role: 'assistant',
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: {
      input: 10,
      output: 5,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 15,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason,
    timestamp: Date.now(),
  };
}

/** As its providers do: what the model yields is pushed on, piece by piece. */
async function pushText(stream, pieces) {
  const message = emptyAnswer('stop');
  const content = { type: 'text', text: '' };
  stream.push({ type: 'start', partial: message });
  message.content.push(content);
  stream.push({ type: 'text_start', contentIndex: 0, partial: message });
  for await (const part of pieces) {
    if (part.type !== 'text') continue;
    content.text += part.text;
    stream.push({ type: 'text_delta', contentIndex: 0, delta: part.text, partial: message });
  }
  stream.push({ type: 'text_end', contentIndex: 0, content: content.text, partial: message });
  stream.push({ type: 'done', reason: 'stop', message });
}

function streamText(count) {
  const stream = createAssistantMessageEventStream();
  void pushText(stream, talkingModel(count).stream());
  return stream;
}

function callingStream(turns) {
  return (_model, context) => {
    const turn = turnOf(context.messages.length);
    if (turn >= turns) return streamText(1);
    const stream = createAssistantMessageEventStream();
    const message = emptyAnswer('toolUse');
    const toolCall = { type: 'toolCall', id: `call-${turn}`, name: NAME, arguments: JSON.parse(ARGUMENTS) };
    stream.push({ type: 'start', partial: message });
    message.content.push(toolCall);
    stream.push({ type: 'toolcall_start', contentIndex: 0, partial: message });
    stream.push({ type: 'toolcall_end', contentIndex: 0, toolCall, partial: message });
    stream.push({ type: 'done', reason: 'toolUse', message });
    return stream;
  };
}

export function turns({ turns }) {
  const streamFn = callingStream(turns);
  return async () => {
    const before = executed.count;
    const agent = new Agent({ initialState: { systemPrompt: SYSTEM_PROMPT, model, tools }, streamFn });
    await agent.prompt('go');
    return executed.count - before;
  };
}

function startLoop(streamFn) {
  const prompt = { role: 'user', content: [{ type: 'text', text: 'go' }], timestamp: Date.now() };
  const context = { systemPrompt: SYSTEM_PROMPT, messages: [], tools };
  return agentLoop([prompt], context, { model, convertToLlm: (messages) => messages }, undefined, streamFn);
}

export function events({ turns }) {
  const streamFn = callingStream(turns);
  return async () => {
    let ended = 0;
    for await (const event of startLoop(streamFn)) if (event.type === 'tool_execution_end') ended += 1;
    return ended;
  };
}

export function deltas({ count }) {
  const streamFn = () => streamText(count);
  return async () => {
    let seen = 0;
    let text = '';
    for await (const event of startLoop(streamFn)) {
      if (event.type !== 'message_update' || event.assistantMessageEvent.type !== 'text_delta') continue;
      text += event.assistantMessageEvent.delta;
      seen += 1;
    }
    return text === '' ? 0 : seen;
  };
}

/** Many agents at once, each with a session in memory. They are kept, as sessions are. */
export function many({ turns, ...crowd }) {
  const streamFn = callingStream(turns);
  const agents = [];
  return timeMany(async () => {
    const agent = new Agent({ initialState: { systemPrompt: SYSTEM_PROMPT, model, tools }, streamFn });
    agents.push(agent);
    await agent.prompt('go');
    const called = agent.state.messages.filter(({ role }) => role === 'toolResult').length;
    if (called !== turns) throw new Error(`The agent called its tool ${called} times, expected ${turns}.`);
    return called;
  }, crowd);
}
