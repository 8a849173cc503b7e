/** Runs one situation with two middleware, then the same conversation again where nothing goes wrong. */
import {
  Agent,
  type AgentEvent,
  type Message,
  type Middleware,
  memoryStore,
  type RunError,
  type RunOptions,
  type RunResult,
  type RunStream,
  type Tool,
} from 'allium';
import { collect, type FakeClock, fakeClock } from 'allium/testing';
import type { Member, Surroundings } from './box.js';
import {
  conversationModel,
  conversationTools,
  type Situation,
  saidIn,
  spareModel,
  type Trouble,
  trouble,
} from './conversation.js';

/** One run as it looked from outside. */
export interface Ended {
  readonly result: RunResult;
  readonly error: RunError | undefined;
  readonly events: readonly AgentEvent[];
  /** Everything in the session afterwards. */
  readonly history: readonly Message[];
}

export interface Observed {
  readonly situation: Situation;
  readonly seen: Trouble;
  readonly first: Ended;
  /** The run goes on after its question was answered. */
  readonly resumed: Ended | undefined;
  /** After an abort: did the run end without time passing? */
  readonly endedAtOnce: boolean | undefined;
  /** Model calls and executions of `act` when the signal was given. */
  readonly callsAtSignal: { readonly model: number; readonly acts: number } | undefined;
  /** What the outermost layer of tools was given in the place of the result of `act`. */
  readonly actFailure: unknown;
  /** Timers that were left when a run was over. */
  readonly timers: number;
  /** The same conversation on the same agent, in another session, and without trouble. */
  readonly second: Ended;
}

/** Nobody was there to wait, so there was nothing to abort. */
export const NOBODY_WAITED = Symbol('nobody waited');

const IDLE_ROUNDS = 6;
/** More than any cooldown, window or back-off of the box. */
const LATER = 120_000;

export async function observe(
  pair: readonly Member[],
  situation: Situation,
  cassette: readonly string[] = [],
): Promise<Observed | typeof NOBODY_WAITED> {
  let now = trouble(situation);
  const clock = fakeClock(1_700_000_000_000);
  const tools = conversationTools(() => now);
  const around: Surroundings = { clock, spare: spareModel(() => now), cassette, tools };
  const noted: { actFailure: unknown; callsAtSignal: Observed['callsAtSignal'] } = {
    actFailure: undefined,
    callsAtSignal: undefined,
  };
  const note = (): void => {
    noted.callsAtSignal ??= { model: now.modelCalls, acts: now.acts };
  };
  const agent = new Agent({
    model: conversationModel(() => now),
    tools: toolsBeside(pair, tools),
    middleware: [
      witness(noted),
      ...pair.map(({ make }, nth) => make(around, nth)),
      stopping(() => now, note),
    ],
    store: memoryStore(),
    limits: { turns: 12 },
    clock,
  });
  const options = runOptionsOf(pair);

  const controller = new AbortController();
  const session = agent.session('first');
  const running = start(session.stream(saidIn(situation), { ...options, signal: controller.signal }), () =>
    session.messages(),
  );
  let endedAtOnce: boolean | undefined;
  if (situation.outcome === 'abort') {
    await quiet(now, running);
    if (running.ended) return NOBODY_WAITED;
    note();
    controller.abort(new Error('The bench aborts.'));
    await quiet(now, running);
    endedAtOnce = running.ended;
  }
  const first = await finish(clock, now, running);
  const seen = { ...now };
  const timers = clock.pending;

  let resumed: Ended | undefined;
  if (first.result.status === 'suspended') {
    const answers = Object.fromEntries(
      first.result.pending.map(({ id }) => [id, { type: 'approve' } as const]),
    );
    const again = session.resumeStream({ answers });
    resumed = await finish(
      clock,
      now,
      start(again, () => session.messages()),
    );
  }

  // A breaker may stay open after an error; after a signal there is no reason to.
  if (seen.thrown !== undefined) await clock.advance(LATER);
  now = trouble(situation);
  now.armed = false;
  const other = agent.session('second');
  const second = await finish(
    clock,
    now,
    start(other.stream(saidIn(situation), options), () => other.messages()),
  );
  return { situation, seen, first, resumed, endedAtOnce, ...noted, timers: timers + clock.pending, second };
}

/** The tools that the agent has itself. */
export function toolsBeside(list: readonly Member[], tools: readonly Tool[]): readonly Tool[] {
  const held = new Set(list.flatMap(({ holds = [] }) => holds));
  return tools.filter(({ name }) => !held.has(name));
}

function runOptionsOf(list: readonly Member[]): RunOptions {
  return Object.assign({}, ...list.map(({ runOptions }) => runOptions));
}

/** The innermost layer: stops the run in the second model call, where the situation is that, and notes slow work. */
export function stopping(now: () => Trouble, note: () => void = () => {}): Middleware {
  return {
    name: 'situation',
    wrapModel(ctx, next) {
      const { armed, situation } = now();
      if (armed && situation.outcome === 'StopRun' && situation.at === 'model' && ctx.turn === 2) {
        note();
        ctx.stop('stopped', 'the situation stops');
      }
      return next();
    },
    // Reads a file, which takes real time: it is work, and nobody hangs.
    async wrapTool(ctx, next) {
      if (ctx.toolCall.name !== 'read_skill') return next();
      const seen = now();
      seen.working++;
      try {
        return await next();
      } finally {
        seen.working--;
      }
    },
  };
}

/** The outermost layer: sees what comes out of the pair. */
function witness(noted: { actFailure: unknown }): Middleware {
  return {
    name: 'witness',
    async wrapTool(ctx, next) {
      try {
        return await next();
      } catch (error) {
        if (ctx.toolCall.name === 'act') noted.actFailure ??= error;
        throw error;
      }
    },
  };
}

export interface Running {
  ended: boolean;
  readonly done: Promise<Ended>;
}

export function start(stream: RunStream, history: () => Promise<readonly Message[]>): Running {
  const work = async (): Promise<Ended> => {
    const { events, result, error } = await collect(stream);
    const end = result ?? error!.result;
    return { result: end, error, events, history: await history() };
  };
  const running: Running = {
    ended: false,
    done: work().finally(() => {
      running.ended = true;
    }),
  };
  running.done.catch(() => {});
  return running;
}

/** Waits until nothing happens any more without time passing. */
export async function quiet(now: Trouble, running: Running): Promise<void> {
  for (let idle = 0; idle < IDLE_ROUNDS && !running.ended; idle = now.working > 0 ? 0 : idle + 1)
    await new Promise((resolve) => setImmediate(resolve));
}

export async function finish(clock: FakeClock, now: Trouble, running: Running): Promise<Ended> {
  for (let rounds = 0; !running.ended; rounds++) {
    await quiet(now, running);
    if (running.ended) break;
    if (!(await clock.advanceToNext()) && !running.ended) {
      await quiet(now, running);
      if (!running.ended && clock.pending === 0)
        throw new Error('The run hangs: nothing it waits for can come.');
    }
    if (rounds > 200) throw new Error('The run does not end, however much time passes.');
  }
  return running.done;
}
