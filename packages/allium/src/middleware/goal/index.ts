/** Keeps a run going until a model says that its goal is reached. */
import {
  defineMiddleware,
  defineState,
  isSyntheticMessage,
  type Message,
  type Middleware,
  type Model,
  type RunContext,
  type RunResult,
  syntheticUserMessage,
  textOf,
} from '../../index.js';
import {
  type Fields,
  invalidOption,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { type Evaluation, evaluate, SHOWN } from './evaluation.js';

// Through the public entry, as plugins do it: TypeScript keeps only one of two paths to the same interface.
declare module '../../index.js' {
  interface RunOptions {
    /** For `goal()`: what has to be true before the run may end. */
    readonly goal?: string;
  }
}

export const OPTIONS = {
  /** The model that judges. A small one is often enough. */
  evaluator: kinds.required(kinds.model<Model>()),
  /** How often it is asked in one run before the goal is given up: an integer from 1 to 100. @default 10 */
  maxEvaluations: kinds.withDefault(kinds.integer(1, 100), 10),
  ...named('goal'),
} satisfies Fields;

export interface GoalOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** The outcome of the goal of a run. */
export interface GoalOutcome {
  readonly condition: string;
  /**
   * `open`: not judged yet, or not met so far. `exhausted`: not met when the evaluations were used up. `unjudged`: the
   * evaluator failed.
   */
  readonly status: 'open' | 'achieved' | 'exhausted' | 'unjudged';
  /** How often the evaluator was asked. */
  readonly evaluations: number;
  /** What the evaluator said last, or what went wrong with it. */
  readonly reason?: string;
}

export interface Goal extends Middleware {
  /** The outcome of the goal of a run with this middleware; undefined if it had none. */
  outcomeOf(result: RunResult): GoalOutcome | undefined;
}

const NAME = 'goal';

/**
 * Gives runs a goal: with a message `/goal CONDITION`, or with `run(input, { goal })`. When such a run is about to
 * end, the evaluator looks at the latest messages. As long as the goal is not met, the model is told what is missing
 * and goes on.
 *
 * @example
 * const goals = goal({ evaluator: judge, maxEvaluations: 3 });
 */
export function goal(options: GoalOptions): Goal {
  const { evaluator, maxEvaluations, name, madeWith } = readOptions('goal', OPTIONS, options);
  // A cell of the run, so that nothing is left for the next one, however this one ends.
  const current = defineState<GoalOutcome | null>({ name: 'goal', scope: 'run', initial: null });
  const outcomes = new Outcomes();

  return {
    ...defineMiddleware({
      name,
      madeWith,
      looksBack: SHOWN,
      runOptions: ['goal'],
      state: [current],
      extraLlmCalls: () => [evaluator],
      beforeRun(ctx) {
        const { goal: given } = ctx.options;
        if (given === undefined) return;
        if (typeof given !== 'string' || given.trim() === '')
          throw invalidOption('goal', 'non-empty text', given);
        // A resume may name the goal of its run again: its evaluations still count.
        if (ctx.state.get(current)?.condition !== given.trim()) ctx.state.set(current, opened(given));
      },
      acceptMessage(message, ctx) {
        const condition = conditionOf(message);
        if (condition === undefined) return undefined;
        if (condition === '') return { block: true, reason: NO_CONDITION };
        ctx.state.set(current, opened(condition));
        return undefined;
      },
      async onRunEnd(ctx) {
        const before = ctx.state.get(current);
        if (before?.status !== 'open') return undefined;
        const after = judged(before, await evaluate(ctx, evaluator, before.condition), maxEvaluations);
        ctx.state.set(current, after);
        ctx.emit(NAME, after);
        return after.status === 'open' ? [syntheticUserMessage(notMet(after), { source: NAME })] : undefined;
      },
      afterRun(ctx) {
        const outcome = ctx.state.get(current);
        if (outcome) outcomes.set(ctx, outcome);
      },
    }),
    outcomeOf: (result) => outcomes.of(result),
  };
}

/** Runs whose outcome is found by their id. */
const MAX_OUTCOMES = 1000;

/**
 * Outcomes of the goals of runs. Found by the result as long as somebody has it, and by the id of the run: the caller
 * may get another result, made further out or for an error.
 */
class Outcomes {
  private readonly byResult = new WeakMap<RunResult, GoalOutcome>();
  private readonly byRun = new Map<string, GoalOutcome>();

  set({ runId, result }: RunContext, outcome: GoalOutcome): void {
    if (result) this.byResult.set(result, outcome);
    this.byRun.delete(runId);
    this.byRun.set(runId, outcome);
    if (this.byRun.size > MAX_OUTCOMES) this.byRun.delete(this.byRun.keys().next().value!);
  }

  of(result: RunResult): GoalOutcome | undefined {
    return this.byResult.get(result) ?? this.byRun.get(result.runId);
  }
}

const NO_CONDITION = 'Write what has to be true after /goal, like "/goal all tests pass".';

/** The condition of a `/goal` message, which may be missing; undefined for any other message. */
function conditionOf(message: Message): string | undefined {
  if (message.role !== 'user' || isSyntheticMessage(message)) return undefined;
  return /^\s*\/goal(?=\s|$)([\s\S]*)$/.exec(textOf(message))?.[1]?.trim();
}

function opened(condition: string): GoalOutcome {
  return { condition: condition.trim(), status: 'open', evaluations: 0 };
}

function judged(before: GoalOutcome, evaluation: Evaluation, maxEvaluations: number): GoalOutcome {
  const { condition } = before;
  const evaluations = before.evaluations + 1;
  if ('problem' in evaluation)
    return { condition, status: 'unjudged', evaluations, reason: evaluation.problem };
  const { achieved, reason } = evaluation;
  const status = achieved ? 'achieved' : evaluations >= maxEvaluations ? 'exhausted' : 'open';
  return { condition, status, evaluations, reason };
}

function notMet({ condition, reason }: GoalOutcome): string {
  return `Goal not yet met: ${reason || condition}\nThe goal is: ${condition}\nGo on until it is met.`;
}
