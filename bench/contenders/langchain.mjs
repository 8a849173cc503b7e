/** LangChain's agent, with a chat model of its own kind. */
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { createAgent, tool } from 'langchain';
import { DELTA, turnOf } from '../work/models.mjs';
import { ARGUMENTS, DESCRIPTION, execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  '`createAgent().invoke()`, or `.stream()` with `for await` (`updates` per turn, `messages` for deltas); validates with zod; the model parses the JSON, as its providers do';

const usage_metadata = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };

class CallingModel extends BaseChatModel {
  constructor(turns) {
    super({});
    this.turns = turns;
  }
  _llmType() {
    return 'bench';
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    // The system prompt is the first message.
    const turn = turnOf(messages.length - 1);
    const tool_calls =
      turn < this.turns
        ? [{ type: 'tool_call', id: `call-${turn}`, name: NAME, args: JSON.parse(ARGUMENTS) }]
        : [];
    const content = turn < this.turns ? '' : 'done';
    return {
      generations: [{ text: content, message: new AIMessage({ content, tool_calls, usage_metadata }) }],
    };
  }
}

class TalkingModel extends CallingModel {
  async *_streamResponseChunks(_messages, _options, runManager) {
    for (let i = 0; i < this.turns; i++) {
      const chunk = new ChatGenerationChunk({ text: DELTA, message: new AIMessageChunk({ content: DELTA }) });
      yield chunk;
      await runManager?.handleLLMNewToken(DELTA, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const add = tool(execute, { name: NAME, description: DESCRIPTION, schema: SCHEMA });
const agentFor = (model) => createAgent({ model, tools: [add], systemPrompt: SYSTEM_PROMPT });
const input = () => ({ messages: [{ role: 'user', content: 'go' }] });
const limit = (turns) => ({ recursionLimit: 2 * turns + 10 });

export function turns({ turns }) {
  const agent = agentFor(new CallingModel(turns));
  return async () => {
    const before = executed.count;
    await agent.invoke(input(), limit(turns));
    return executed.count - before;
  };
}

export function events({ turns }) {
  const agent = agentFor(new CallingModel(turns));
  return async () => {
    let ended = 0;
    const stream = await agent.stream(input(), { ...limit(turns), streamMode: 'updates' });
    for await (const update of stream) if ('tools' in update) ended += 1;
    return ended;
  };
}

export function deltas({ count }) {
  const agent = agentFor(new TalkingModel(count));
  return async () => {
    let seen = 0;
    let text = '';
    const stream = await agent.stream(input(), { streamMode: 'messages' });
    for await (const [chunk] of stream) {
      text += chunk.content;
      seen += 1;
    }
    return text === '' ? 0 : seen;
  };
}
