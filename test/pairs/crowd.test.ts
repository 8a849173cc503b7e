/** One instance of each middleware on a hundred runs at once, which end in every way a run can. */
import { Agent, memoryStore, textOf } from 'allium';
import * as box from 'allium/middleware';
import { fakeClock } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { type Ended, finish, quiet, type Running, start, stopping } from './bench.js';
import { BOX, type Member } from './box.js';
import {
  conversationModel,
  conversationTools,
  FINAL,
  inputOf,
  SITUATIONS,
  spareModel,
  type Trouble,
  trouble,
} from './conversation.js';

const RUNS = 100;
/** Errors are left out: that one run has them is meant to be felt by others, where a breaker stands. */
const ENDS = SITUATIONS.filter(
  ({ outcome, at }) => !outcome.endsWith('error') && !outcome.endsWith('cut') && at !== 'wait',
);

/** What a crowd needs otherwise: limits for all of it, and keys that tell calls apart. */
const FOR_MANY: Readonly<Record<string, Member['make']>> = {
  'rate-limit': () => box.rateLimit({ limit: 10, perMs: 1000 }),
  'rate-limit of runs': () => box.rateLimit({ limit: 10, perMs: 1000, scope: 'run' }),
  idempotency: () =>
    box.idempotency({ store: new Map(), key: ({ toolCall }) => toolCall.name + toolCall.arguments }),
};

describe(`${RUNS} runs at once with one instance of`, () => {
  for (const { name, make: usual } of BOX) {
    it(name, async () => {
      const runs = await crowd(FOR_MANY[name] ?? usual);
      expect(runs).toHaveLength(RUNS);
      expect(runs.map(endOf)).toEqual(runs.map((_, i) => EXPECTED[ENDS[i % ENDS.length]!.outcome]));
    });
  }
});

const EXPECTED: Readonly<Record<string, string>> = {
  success: `done: ${FINAL}, acted`,
  StopRun: 'stopped: stopped',
  suspension: 'suspended: suspended, 1 question',
  abort: 'aborted: aborted',
};

function endOf({ result, history }: Ended): string {
  const { status, stop, pending, text } = result;
  if (status === 'suspended') return `${status}: ${stop.reason}, ${pending.length} question`;
  if (status !== 'done') return `${status}: ${stop.reason}`;
  const act = history.find((one) => one.role === 'tool' && one.toolName === 'act');
  return `${status}: ${text}, ${act && textOf(act)}`;
}

async function crowd(make: Member['make']): Promise<readonly Ended[]> {
  const troubles = new Map(ENDS.map((one) => [inputOf(one), trouble(one)]));
  const of = (text: string): Trouble => troubles.get(text)!;
  const clock = fakeClock(1_700_000_000_000);
  const success = of(inputOf(ENDS[0]!));
  const agent = new Agent({
    model: conversationModel(({ messages }) => of(textOf(messages[0]!))),
    tools: conversationTools(({ history }) => of(textOf(history[0]!))),
    middleware: [make({ clock, spare: spareModel(() => success), cassette: [] }, 0)],
    store: memoryStore(),
    clock,
  });
  const aborts: AbortController[] = [];
  const running = Array.from({ length: RUNS }, (_, i): Running => {
    const situation = ENDS[i % ENDS.length]!;
    const input = inputOf(situation);
    const session = agent.session(`session-${i}`);
    const controller = new AbortController();
    if (situation.outcome === 'abort') aborts.push(controller);
    const options = { middleware: [stopping(() => of(input))], signal: controller.signal };
    return start(session.stream(input, options), () => session.messages());
  });
  const all: Running = {
    ended: false,
    done: Promise.all(running.map(({ done }) => done)).then((ends) => {
      all.ended = true;
      return ends[0]!;
    }),
  };
  await quiet(success, all);
  for (const controller of aborts) controller.abort(new Error('One of the crowd is aborted.'));
  await finish(clock, success, all);
  expect(clock.pending).toBe(0);
  return Promise.all(running.map(({ done }) => done));
}
