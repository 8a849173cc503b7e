import { Agent, defineMiddleware, memoryStore, textOf } from 'allium';
import { type CompactionOptions, type CompactionState, compaction } from 'allium/middleware/compaction';
import { type Script, scriptedModel, text } from 'allium/testing';

// A session with compaction in which a character is a token, for the tests of its bad days.

const tokenCounter = (text: string) => text.length;
export const silent = text('ok', { inputTokens: 0, outputTokens: 0 });
export const long = (n: number, length = 96) => `${n}:`.padEnd(length, 'x');
export const summariser = (...script: Script[]) => scriptedModel(script, { id: 'summariser', repeat: true });
export const BASE = { maxTokens: 500, keepTailTokens: 150, minMessages: 2, tokenCounter };

export function setup(
  script: readonly Script[],
  options: Partial<CompactionOptions> = {},
  answers: Script[] = [silent],
) {
  const summaryModel = summariser(...script);
  const model = scriptedModel(answers, { repeat: true });
  const made = compaction({ ...BASE, summaryModel, ...options });
  let state: CompactionState | undefined;
  const look = defineMiddleware({
    name: 'look',
    afterModel: (ctx) => {
      state = made.stateOf(ctx);
    },
  });
  const store = memoryStore();
  const agent = new Agent({ model, store, middleware: [made, look] });
  const session = agent.session('s');
  const sent = () => model.requests.at(-1)!.messages.map(textOf);
  return { agent, session, model, summaryModel, store, sent, state: () => state };
}
