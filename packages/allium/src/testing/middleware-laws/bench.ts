/** One agent with the middleware under test, a model that follows scenarios, and a clock that stands still. */
import {
  Agent,
  type Clock,
  type Metadata,
  type Middleware,
  type Model,
  type ModelSettings,
  memoryStore,
  RunError,
  type RunOptions,
  type RunStream,
  type Session,
  type Store,
  type Tool,
  type UserMessage,
} from '../../index.js';
import { deepFreeze, invalidOption, isThenable } from '../../kit/index.js';
import { collect } from '../collect.js';
import { fakeClock } from '../fake-clock.js';
import { play, toStep } from '../scripted-model.js';
import { type Activity, waits } from './activity.js';
import { counting } from './counting-clock.js';
import { meetingPoint } from './meeting-point.js';
import { type Observation, observation, type Seen } from './observation.js';
import { type Habits, realWork } from './real-work.js';
import { scenarioLayer } from './scenario-layer.js';
import { inputOf, type KitScenario, kitTools } from './scenarios.js';
import { waiting } from './waiting.js';

export type MiddlewareFactory = (env: { readonly clock: Clock }) => Middleware;

export interface BenchOptions {
  /** Makes the middleware under test. Without one the bench shows how runs go without it. */
  readonly factory?: MiddlewareFactory | undefined;
  /** Other middleware that the one under test needs. They are there even without it. */
  readonly companions?: ((env: { readonly clock: Clock }) => readonly Middleware[]) | undefined;
  /** Stands around the middleware under test. */
  readonly outer?: Middleware;
  /** Sees the middleware before it is used. */
  readonly prepare?: (middleware: Middleware) => Middleware;
  readonly tools?: readonly Tool[];
  /** Where its sessions are. @default a new one in memory */
  readonly store?: Store;
  readonly settings?: ModelSettings;
  /** Freezes the model and the parts it streams. */
  readonly freeze?: boolean;
  readonly timeoutMs: number;
  /** What is known of how the middleware under test works, from all benches. */
  readonly habits: Habits;
}

interface RunOnBench {
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
  /** Timers that the middleware has set, and that have neither fired nor been cancelled. */
  readonly timers: number;
  /** Calls of the model and of tools of the kit so far. */
  readonly calls: number;
  /** Starts a run. `kit_abort` aborts the latest one. */
  start(scenario: KitScenario, how?: RunOnBench): Running;
  /** Runs a scenario to its end, letting as much time pass as it takes. */
  run(scenario: KitScenario, how?: RunOnBench): Promise<Observation>;
  /** A session that runs can share. @default a new one */
  session(id?: string): Session;
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

/** Show whether a middleware replaces the settings of a call instead of adding to them. */
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
    // A middleware may call it directly, past the kernel. It gets an answer, and the call is counted for the laws.
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
    store: options.store ?? memoryStore(),
    limits: { turns: 12 },
    clock: time,
  });
  const { quiet, idle, finish } = waiting({ time, clock, activity, work: realWork(habits), timeoutMs });
  const newSession = (id = `bench-${agent.newId()}`): Session => agent.session(id);

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

/** The middleware that a factory made. A list is refused: it would be checked as if it were one middleware. */
function one(made: Middleware): Middleware {
  if (!Array.isArray(made) && !isThenable(made)) return made;
  throw invalidOption('factory()', 'one middleware, made at once', made);
}

/** Companions stand around the middleware under test, except those that its `order`, or their own, puts inside it. */
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
