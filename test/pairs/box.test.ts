/** The members that work on requests and tools do something in the conversation: an idle one would keep every law. */
import { Agent, type Middleware, textOf, tool } from 'allium';
import * as box from 'allium/middleware';
import { failWith, fakeClock, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Observed, observe } from './bench.js';
import { BOX, type Member } from './box.js';
import { answerTo, SITUATIONS } from './conversation.js';

const sent = ({ seen }: Observed, turn: number) => seen.requests[turn - 1]!;
const textsOf = (observed: Observed, turn: number) => sent(observed, turn).messages.map(textOf).join('\n');
const told = ({ first }: Observed, name: string) =>
  first.events.some((event) => event.type === 'custom' && event.name === name);
const answered = ({ first }: Observed, name: string) =>
  first.history.some((one) => one.role === 'tool' && one.toolName === name && !one.isError);

const TRACES: Readonly<Record<string, (observed: Observed) => boolean>> = {
  compaction: (one) => told(one, 'compaction') && textsOf(one, 1).includes('There was an earlier question.'),
  'context-editing': (one) => textsOf(one, 2).includes('was cleared'),
  'deferred-tools': (one) => answerTo('act', one.first.history)?.toolName === 'deferred_tool_call',
  goal: (one) => told(one, 'goal'),
  'history-truncator': (one) => !textsOf(one, 2).includes('What was before'),
  'memory-recall': (one) => textsOf(one, 1).includes('were added before'),
  'prompt-caching': (one) => sent(one, 1).settings.systemMetadata !== undefined,
  skills: (one) => sent(one, 1).systemPrompt.includes('adding') && answered(one, 'read_skill'),
  subagents: (one) => answered(one, 'subagent'),
  'todo-list': (one) => answered(one, 'write_todos') && sent(one, 2).messages.at(-1)!.role === 'user',
  'tool-result-limit': (one) => textsOf(one, 2).includes('read_tool_result'),
  'tool-selector': (one) => !sent(one, 1).tools.some(({ name }) => name === 'rest'),
};

async function seenWith(list: readonly Member[]): Promise<Observed> {
  const observed = await observe(list, SITUATIONS[0]!);
  if (typeof observed === 'symbol') throw new Error('There was nothing to abort.');
  return observed;
}

describe('leaves a trace with it and none without:', () => {
  for (const [name, hasTrace] of Object.entries(TRACES))
    it(name, async () => {
      const member = BOX.find((one) => one.name === name)!;
      expect(hasTrace(await seenWith([member]))).toBe(true);
      expect(hasTrace(await seenWith([]))).toBe(false);
    });
});

describe('the models that middleware ask are tried again by a retry inside, and not by one outside:', () => {
  const asking: Readonly<Record<string, (model: ReturnType<typeof scriptedModel>) => Middleware>> = {
    compaction: (summaryModel) =>
      box.compaction({ summaryModel, maxTokens: 50, keepTailTokens: 0, minMessages: 1 }),
    goal: (evaluator) => box.goal({ evaluator }),
    'tool-selector': (model) => box.toolSelector({ model, maxTools: 1 }),
  };
  const answers = { compaction: 'Short.', goal: '{"achieved":true,"reason":""}', 'tool-selector': '["one"]' };
  const tools = ['one', 'two'].map((name) =>
    tool({ name, description: name, input: z.object({}), execute: () => name }),
  );

  for (const [name, make] of Object.entries(asking))
    it(name, async () => {
      const calls = async (order: (own: Middleware) => readonly Middleware[]): Promise<number> => {
        const busy = Object.assign(new Error('Busy.'), { status: 503 });
        const asked = scriptedModel([failWith(busy), answers[name as keyof typeof answers]]);
        const clock = fakeClock();
        const agent = new Agent({
          model: scriptedModel(['Yes.']),
          tools,
          middleware: order(make(asked)),
          clock,
        });
        const stream = agent.stream(
          ['Long ago. '.repeat(100), 'Now?'],
          name === 'goal' ? { goal: 'yes' } : {},
        );
        const done = stream.result.then(() => true);
        while (!(await Promise.race([done, new Promise((resolve) => setImmediate(resolve))])))
          await clock.advance(1000);
        return asked.requests.length;
      };
      const retry = box.retry({ jitter: 'none' });
      expect(await calls((own) => [own, retry])).toBe(2);
      expect(await calls((own) => [retry, own])).toBe(1);
    });
});
