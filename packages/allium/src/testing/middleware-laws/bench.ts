/** One agent with the middleware under test, a model that follows scenarios, and a clock that stands still. */
import { Agent } from '../../kernel/agent.js';
import type { Clock } from '../../kernel/clock.js';
import { RunError } from '../../kernel/errors.js';
import { memoryStore } from '../../kernel/memory-store.js';
import { deepFreeze, type Metadata, type UserMessage, userMessage } from '../../kernel/messages.js';
import type { Middleware } from '../../kernel/middleware.js';
import type { Model, ModelSettings } from '../../kernel/model.js';
import type { Session } from '../../kernel/session.js';
import type { Tool } from '../../kernel/tool.js';
import { collect } from '../collect.js';
import { fakeClock, settle } from '../fake-clock.js';
import { play, snapshot, toStep } from '../scripted-model.js';
import { type Observation, observation, type Seen } from './observation.js';
import { type KitScenario, kitTools } from './scenarios.js';

export type MiddlewareFactory = (env: { readonly clock: Clock }) => Middleware;

export interface BenchOptions {
  /** Nothing is tested without one: the bench shows how things are then. */
  readonly factory?: MiddlewareFactory | undefined;
  /** Stands around the middleware under test. */
  readonly outer?: Middleware;
  /** Sees the middleware before it is used. */
  readonly prepare?: (middleware: Middleware) => Middleware;
  readonly tools?: readonly Tool[];
  readonly settings?: ModelSettings;
  /** Neither the model nor the parts it streams can be changed. */
  readonly freeze?: boolean;
  readonly timeoutMs: number;
}

export interface RunOnBench {
  readonly input?: UserMessage;
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
  /** Starts a run. What `kit_abort` aborts is the latest one. */
  start(scenario: KitScenario, how?: RunOnBench): Running;
  /** Runs a scenario to its end, letting as much time pass as it takes. */
  run(scenario: KitScenario, how?: RunOnBench): Promise<Observation>;
  /** Waits until nothing happens any more without time passing. */
  quiet(running?: Running): Promise<void>;
  /** Lets time pass until the run has ended. */
  finish(running: Running): Promise<Observation>;
}

export interface Running {
  readonly session: Session;
  readonly ended: boolean;
  readonly done: Promise<Observation>;
  /** Calls there had been when it was aborted. */
  readonly callsAtAbort: number;
  abort(): void;
}

/** Rounds without work after which nothing is expected to happen by itself; enough for a little real I/O. */
const QUIET_ROUNDS = 8;

export function bench(options: BenchOptions): Bench {
  const { factory, outer, prepare = (same) => same, tools = [], settings = {}, freeze, timeoutMs } = options;
  const time = fakeClock(1_700_000_000_000);
  const clock = counting(time);
  let working = 0;
  let calls = 0;
  let latest: Running | undefined;
  const tick = async (): Promise<void> => {
    working++;
    await new Promise((resolve) => setImmediate(resolve));
    working--;
  };
  const model: Model = {
    provider: 'test',
    id: 'scenario',
    stream: () => {
      throw new Error('The model was called outside a run of the bench.');
    },
  };
  if (freeze) Object.freeze(model);
  const subject = factory ? [prepare(factory({ clock }))] : [];
  const agent = new Agent({
    model,
    systemPrompt: 'You are a test.',
    settings,
    tools: [
      ...kitTools(
        () => calls++,
        tick,
        () => latest?.abort(),
      ),
      ...tools,
    ],
    middleware: [...(outer ? [outer] : []), ...subject],
    store: memoryStore(),
    limits: { turns: 12 },
    clock: time,
  });

  /** Stands innermost: gives each turn its answer and notes what reached the model and the tools. */
  function scenarioLayer({ answers, stopsAtModel }: KitScenario, seen: Seen, run: AbortSignal): Middleware {
    const modelOf = (turn: number): Model => ({
      ...model,
      stream(request, callOptions) {
        calls++;
        seen.requests.push({ turn, request: snapshot(request) });
        // Whoever calls after an abort is answered at once: only the law about such calls is to notice.
        const step = toStep(run.aborted ? 'Done.' : (answers[turn - 1] ?? 'Done.'));
        // Copies: whoever changes one spoils neither the scenario nor the next attempt.
        const parts = step.parts.map((part) =>
          part === 'tick' ? part : freeze ? deepFreeze({ ...part }) : { ...part },
        );
        return play({ ...step, parts }, { options: callOptions, tick });
      },
    });
    return {
      name: 'scenario',
      wrapModel(ctx, next) {
        if (stopsAtModel) ctx.stop('stopped', 'The bench stops the run.');
        return ctx.model === model ? next({ model: modelOf(ctx.turn) }) : next();
      },
      wrapTool(ctx, next) {
        seen.toolRuns.push({ turn: ctx.turn, name: ctx.toolCall.name, args: ctx.args });
        return next();
      },
      beforeToolCall: (ctx) =>
        ctx.toolCall.name === 'kit_refused' ? { block: true, reason: 'Refused.' } : undefined,
    };
  }

  function start(
    scenario: KitScenario,
    { input, metadata = { from: 'kit' }, mode = 'stream' }: RunOnBench = {},
  ): Running {
    const controller = new AbortController();
    const seen: Seen = { requests: [], toolRuns: [] };
    const session = agent.session(`bench-${agent.newId()}`);
    const given = input ?? userMessage(scenario.input ?? 'Hello.');
    const runOptions = {
      middleware: [scenarioLayer(scenario, seen, controller.signal)],
      signal: controller.signal,
      metadata,
    };
    const running = {
      session,
      ended: false,
      callsAtAbort: Number.POSITIVE_INFINITY,
      abort: () => {
        running.callsAtAbort = Math.min(running.callsAtAbort, calls);
        controller.abort(new Error('The bench aborts.'));
      },
      done: outcome().finally(() => {
        running.ended = true;
      }),
    };
    latest = running;
    // Whoever looks at `done` late is told then.
    running.done.catch(() => {});
    return running;

    async function outcome(): Promise<Observation> {
      if (mode === 'run') return observation(seen, [], await endOf(session.run(given, runOptions)));
      const { events, result, error } = await collect(session.stream(given, runOptions));
      return observation(seen, events, { result: error?.result ?? result!, error });
    }
  }

  async function quiet(running?: Running): Promise<void> {
    for (let idle = 0; idle < QUIET_ROUNDS && !running?.ended; idle = working > 0 ? 0 : idle + 1)
      await settle();
  }

  async function finish(running: Running): Promise<Observation> {
    const deadline = Date.now() + timeoutMs;
    while (!running.ended) {
      await quiet(running);
      if (!running.ended) await time.advanceToNext();
      if (!running.ended && Date.now() > deadline)
        throw new Error(`The run did not end within ${timeoutMs} ms.`);
    }
    return running.done;
  }

  return {
    model,
    get timers() {
      return clock.pending;
    },
    get calls() {
      return calls;
    },
    start,
    quiet,
    finish,
    run: (scenario, how) => finish(start(scenario, how)),
  };
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

/** A view of a clock that counts the timers set through it. */
function counting(clock: Clock): Clock & { readonly pending: number } {
  const open = new Set<object>();
  return {
    now: () => clock.now(),
    setTimer(fn, ms) {
      const timer = {};
      open.add(timer);
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
  };
}
