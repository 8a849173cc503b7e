/** One instance of each middleware on a hundred runs at once, which end in every way a run can. */
import { Agent, type Message, memoryStore, textOf, toolCallsOf } from 'allium';
import * as box from 'allium/middleware';
import { fakeClock } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { type Ended, finish, quiet, type Running, start, stopping, toolsBeside } from './bench.js';
import { BOX, type Member } from './box.js';
import {
  answerTo,
  conversationModel,
  conversationTools,
  FINAL,
  inputOf,
  SITUATIONS,
  type Situation,
  saidIn,
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
  for (const member of BOX) {
    it(member.name, async () => {
      const runs = await crowd({ ...member, make: FOR_MANY[member.name] ?? member.make });
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
  const act = answerTo('act', history);
  return `${status}: ${text}, ${act && textOf(act)}`;
}

/** The input that a message is, or belongs to: where the input was summarised, the calls still tell. */
function aboutOf(message: Message): string {
  const [act] =
    message.role === 'assistant' ? toolCallsOf(message).filter(({ id }) => id === 'call-act') : [];
  if (!act) return textOf(message);
  const args = JSON.parse(act.arguments) as Situation & { readonly arguments?: Situation };
  return inputOf(args.arguments ?? args);
}

async function crowd(member: Member): Promise<readonly Ended[]> {
  const troubles = new Map(ENDS.map((one) => [inputOf(one), trouble(one)]));
  const of = (text: string): Trouble => troubles.get(text)!;
  const among = (messages: readonly Message[]): Trouble =>
    of(messages.map(aboutOf).find((text) => troubles.has(text))!);
  const clock = fakeClock(1_700_000_000_000);
  const success = of(inputOf(ENDS[0]!));
  const tools = conversationTools(({ history }) => among(history));
  const agent = new Agent({
    model: conversationModel(({ messages }) => among(messages)),
    tools: toolsBeside([member], tools),
    middleware: [member.make({ clock, spare: spareModel(() => success), cassette: [], tools }, 0)],
    store: memoryStore(),
    clock,
  });
  const aborts: AbortController[] = [];
  const running = Array.from({ length: RUNS }, (_, i): Running => {
    const situation = ENDS[i % ENDS.length]!;
    const session = agent.session(`session-${i}`);
    const controller = new AbortController();
    if (situation.outcome === 'abort') aborts.push(controller);
    const options = {
      ...member.runOptions,
      middleware: [stopping(() => of(inputOf(situation)))],
      signal: controller.signal,
    };
    return start(session.stream(saidIn(situation), options), () => session.messages());
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
