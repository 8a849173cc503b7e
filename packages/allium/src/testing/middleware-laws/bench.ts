/** One agent with the middleware under test, a model that follows scenarios, and a clock that stands still. */
import {
  Agent,
  type Clock,
  type Metadata,
  type Middleware,
  type Model,
  type ModelSettings,
  memoryStore,
  monotonic,
  RunError,
  type RunOptions,
  type RunStream,
  type Session,
  type Tool,
  type UserMessage,
} from '../../index.js';
import { deepFreeze, invalidOption, isThenable } from '../../kit/index.js';
import { collect } from '../collect.js';
import { type FakeClock, fakeClock, settle } from '../fake-clock.js';
import { play, snapshot, toStep, untilAborted } from '../scripted-model.js';
import { meetingPoint } from './meeting-point.js';
import { type Observation, observation, type Seen } from './observation.js';
import { type Habits, type RealWork, realWork } from './real-work.js';
import { inputOf, type KitScenario, kitTools } from './scenarios.js';

export type MiddlewareFactory = (env: { readonly clock: Clock }) => Middleware;

export interface BenchOptions {
  /** Without one, nothing is tested: the bench shows how things are then. */
  readonly factory?: MiddlewareFactory | undefined;
  /** What the middleware under test needs besides itself, whether it is there or not. */
  readonly companions?: ((env: { readonly clock: Clock }) => readonly Middleware[]) | undefined;
  /** Stands around the middleware under test. */
  readonly outer?: Middleware;
  /** Sees the middleware before it is used. */
  readonly prepare?: (middleware: Middleware) => Middleware;
  readonly tools?: readonly Tool[];
  readonly settings?: ModelSettings;
  /** Neither the model nor the parts it streams can be changed. */
  readonly freeze?: boolean;
  readonly timeoutMs: number;
  /** The habits of the middleware under test, on all benches. */
  readonly habits: Habits;
}

export interface RunOnBench {
  readonly input?: UserMessage;
  /** @default a session of its own */
  readonly session?: Session;
  readonly metadata?: Metadata;
  /** `run` has no consumer, so nothing is streamed to one. @default 'stream' */
  readonly mode?: 'stream' | 'run';
}

export interface Bench {
  /** The model of the agent, which the middleware sees. */
  readonly model: Model;
  /** Timers the middleware has set and neither let fire nor cancelled. */
  readonly timers: number;
  /** Calls of the model and of tools of the kit so far. */
  readonly calls: number;
  /** Starts a run. `kit_abort` aborts the latest one. */
  start(scenario: KitScenario, how?: RunOnBench): Running;
  /** Runs a scenario to its end, letting as much time pass as it takes. */
  run(scenario: KitScenario, how?: RunOnBench): Promise<Observation>;
  /** A session that runs can share. */
  session(): Session;
  /** Waits until nothing happens any more without time passing. */
  quiet(running?: Running): Promise<void>;
  /** The same, but also waits for work outside of this thread, such as writing a file. */
  idle(running: Running): Promise<void>;
  /** Lets time pass until the run has ended. */
  finish(running: Running): Promise<Observation>;
  /** Approves whatever a suspended run asks, and resumes it. */
  resume(running: Running, suspended: Observation): Running;
}

export interface Running {
  readonly scenario: KitScenario;
  readonly session: Session;
  readonly ended: boolean;
  readonly done: Promise<Observation>;
  /** Calls there had been when it was aborted. */
  readonly callsAtAbort: number;
  abort(): void;
}

/**
 * After so many rounds without work, nothing is expected to happen by itself, except for work outside of this thread.
 */
const QUIET_ROUNDS = 8;
/** Shows who replaces the settings of a call with its own, and who adds what most would add. */
const SETTINGS: ModelSettings = deepFreeze({
  topP: 0.9,
  stopSequences: ['STOP'],
  provider: { test: { effort: 'low' } },
});

export function bench(options: BenchOptions): Bench {
  const { factory, outer, prepare = (same) => same, tools = [], settings = SETTINGS, timeoutMs } = options;
  const { companions = () => [], freeze = false, habits } = options;
  const time = fakeClock(1_700_000_000_000);
  const clock = counting(time);
  const activity: Activity = { calls: 0, steps: 0, working: 0, hanging: 0 };
  const { tick, hang } = waits(activity);
  let latest: Running | undefined;
  const wrapped = new WeakMap<ModelSettings, Model>();
  const model: Model = {
    provider: 'test',
    id: 'scenario',
    // A middleware that calls it past the kernel is answered, and counted, so that the laws see it.
    stream(request, callOptions) {
      const meant = wrapped.get(request.settings);
      if (meant) return meant.stream(request, callOptions);
      activity.calls++;
      return play(toStep('Done.'), { options: callOptions, tick });
    },
  };
  if (freeze) Object.freeze(model);
  const subject = factory ? [prepare(one(factory({ clock })))] : [];
  const agent = new Agent({
    model,
    systemPrompt: 'You are a test.',
    settings,
    tools: [
      ...kitTools({
        onCall: () => activity.calls++,
        tick,
        hang,
        meet: meetingPoint(time),
        abort: () => latest?.abort(),
        freeze,
      }),
      ...tools,
    ],
    middleware: [...(outer ? [outer] : []), ...placed(subject, companions({ clock }))],
    store: memoryStore(),
    limits: { turns: 12 },
    clock: time,
  });
  const { quiet, idle, finish } = waiting({ time, clock, activity, work: realWork(habits), timeoutMs });
  const newSession = (): Session => agent.session(`bench-${agent.newId()}`);

  function start(scenario: KitScenario, how: RunOnBench = {}): Running {
    const { session = newSession(), input = inputOf(scenario), metadata = { from: 'kit' }, mode } = how;
    return launch(scenario, session, async (seen, runOptions) => {
      const given = { ...runOptions, metadata };
      if (mode === 'run') return observation(seen, [], await endOf(session.run(input, given)));
      return observed(seen, session.stream(input, given));
    });
  }

  function launch(
    scenario: KitScenario,
    session: Session,
    outcome: (seen: Seen, options: RunOptions) => Promise<Observation>,
  ): Running {
    const controller = new AbortController();
    const { signal } = controller;
    const seen: Seen = { requests: [], toolRuns: [] };
    const layer = scenarioLayer(scenario, seen, { model, wrapped, signal, freeze, activity, tick, hang });
    const running = {
      scenario,
      session,
      ended: false,
      callsAtAbort: Number.POSITIVE_INFINITY,
      abort: () => {
        running.callsAtAbort = Math.min(running.callsAtAbort, activity.calls);
        controller.abort(new Error('The bench aborts.'));
      },
      done: outcome(seen, { middleware: [layer], signal }).finally(() => {
        running.ended = true;
      }),
    };
    latest = running;
    // Code that looks at `done` late gets the error then.
    running.done.catch(() => {});
    return running;
  }

  function resume({ scenario, session }: Running, { result }: Observation): Running {
    const answers = Object.fromEntries(result.pending.map(({ id }) => [id, { type: 'approve' as const }]));
    return launch(scenario, session, (seen, runOptions) =>
      observed(seen, session.resumeStream({ ...runOptions, answers })),
    );
  }

  return {
    model,
    get timers() {
      return clock.pending;
    },
    get calls() {
      return activity.calls;
    },
    session: newSession,
    start,
    quiet,
    idle,
    finish,
    resume,
    run: (scenario, how) => finish(start(scenario, how)),
  };
}

interface Waiting {
  readonly time: FakeClock;
  readonly clock: CountingClock;
  readonly activity: Activity;
  readonly work: RealWork;
  readonly timeoutMs: number;
}

/** How runs are waited for: first for what happens by itself, then for time to pass. */
function waiting({
  time,
  clock,
  activity,
  work,
  timeoutMs,
}: Waiting): Pick<Bench, 'quiet' | 'idle' | 'finish'> {
  async function quiet(running?: Running): Promise<void> {
    for (let still = 0; still < QUIET_ROUNDS && !running?.ended; still = activity.working > 0 ? 0 : still + 1)
      await settle();
  }

  /** Does something still happen by itself, with the clock standing still? */
  async function stirs(running: Running): Promise<boolean> {
    const signs = () => [running.ended, activity.calls, activity.steps, time.pending, clock.set].join();
    return !running.ended && (await work.stirs(signs, clock.pending > 0));
  }

  async function idle(running: Running): Promise<void> {
    do await quiet(running);
    while (activity.hanging === 0 && (await stirs(running)));
  }

  async function finish(running: Running): Promise<Observation> {
    const deadline = Date.now() + timeoutMs;
    while (!running.ended) {
      await quiet(running);
      if (!(await stirs(running)) && !running.ended) await time.advanceToNext();
      if (!running.ended && Date.now() > deadline)
        throw new Error(`The run did not end within ${timeoutMs} ms.`);
    }
    return running.done;
  }

  return { quiet, idle, finish };
}

/** What a factory made. A list would be checked against the laws as if it were one. */
function one(made: Middleware): Middleware {
  if (!Array.isArray(made) && !isThenable(made)) return made;
  throw invalidOption('factory()', 'one middleware, made at once', made);
}

/** Companions stand around the middleware under test, except for those that one of the two wants inside of it. */
function placed(subject: readonly Middleware[], companions: readonly Middleware[]): readonly Middleware[] {
  if (!Array.isArray(companions)) throw invalidOption('companions()', 'a list of middleware', companions);
  const isInside = ({ name, order }: Middleware): boolean =>
    subject.some(
      (one) =>
        (name !== undefined && one.order?.outside?.includes(name)) ||
        (one.name !== undefined && order?.inside?.includes(one.name)),
    );
  const inside = companions.filter(isInside);
  return [...companions.filter((one) => !inside.includes(one)), ...subject, ...inside];
}

/** What happens on a bench, for those who wait until nothing does. */
interface Activity {
  calls: number;
  /** Calls that came to the scenario. */
  steps: number;
  /** Pauses of the kit that end by themselves. */
  working: number;
  /** Waits of the kit that only an abort ends. */
  hanging: number;
}

interface Waits {
  tick(): Promise<void>;
  hang(signal: AbortSignal): Promise<void>;
}

function waits(activity: Activity): Waits {
  return {
    async tick() {
      activity.working++;
      await new Promise((resolve) => setImmediate(resolve));
      activity.working--;
    },
    async hang(signal) {
      activity.hanging++;
      await untilAborted(signal);
      activity.hanging--;
    },
  };
}

interface OnBench extends Waits {
  readonly model: Model;
  /** What the model that a middleware wrapped should answer, by the settings it is asked with. */
  readonly wrapped: WeakMap<ModelSettings, Model>;
  readonly signal: AbortSignal;
  readonly freeze: boolean;
  readonly activity: Activity;
}

/** The innermost layer: gives each turn its answer and notes what reached the model and the tools. */
function scenarioLayer(
  { answers, stopsAtModel }: KitScenario,
  seen: Seen,
  { model, wrapped, signal, freeze, activity, tick, hang }: OnBench,
): Middleware {
  const modelOf = (turn: number): Model => ({
    ...model,
    stream(request, options) {
      activity.calls++;
      seen.requests.push({ turn, request: snapshot(request) });
      // A call after an abort is answered at once: only the law about such calls should notice.
      const step = toStep(signal.aborted ? 'Done.' : (answers[turn - 1] ?? 'Done.'));
      // Copies, so that changing one spoils neither the scenario nor the next attempt.
      const parts = step.parts.map((part) =>
        part === 'tick' ? part : freeze ? deepFreeze({ ...part }) : { ...part },
      );
      return play({ ...step, parts }, { options, tick, hang });
    },
  });
  return {
    name: 'scenario',
    wrapModel(ctx, next) {
      activity.steps++;
      if (stopsAtModel) ctx.stop('stopped', 'The bench stops the run.');
      if (ctx.model === model) return next({ model: modelOf(ctx.turn) });
      if (ctx.model.provider !== model.provider || ctx.model.id !== model.id) return next();
      // A middleware put one of its own around it, which is to be asked as well.
      const settings = Object.freeze({ ...ctx.settings });
      wrapped.set(settings, modelOf(ctx.turn));
      return next({ settings });
    },
    wrapTool({ turn, toolCall: { id, name }, args }, next) {
      activity.steps++;
      seen.toolRuns.push({ turn, id, name, args });
      return next();
    },
    beforeToolCall: (ctx) =>
      ctx.toolCall.name === 'kit_refused' ? { block: true, reason: 'Refused.' } : undefined,
  };
}

async function observed(seen: Seen, stream: RunStream): Promise<Observation> {
  const { events, result, error } = await collect(stream);
  return observation(seen, events, { result: error?.result ?? result!, error });
}

async function endOf(
  run: ReturnType<Session['run']>,
): Promise<{ result: Awaited<typeof run>; error?: RunError }> {
  try {
    return { result: await run };
  } catch (error) {
    if (error instanceof RunError) return { result: error.result, error };
    throw error;
  }
}

interface CountingClock extends Clock {
  readonly pending: number;
  /** All that were ever set. */
  readonly set: number;
}

/** A view of a clock that counts the timers set through it. */
function counting(clock: Clock): CountingClock {
  const open = new Set<object>();
  let set = 0;
  return {
    now: () => clock.now(),
    monotonic: () => monotonic(clock),
    setTimer(fn, ms) {
      const timer = {};
      open.add(timer);
      set++;
      const cancel = clock.setTimer(() => {
        open.delete(timer);
        fn();
      }, ms);
      return () => {
        open.delete(timer);
        cancel();
      };
    },
    get pending() {
      return open.size;
    },
    get set() {
      return set;
    },
  };
}
