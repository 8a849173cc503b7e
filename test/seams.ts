// One trial for the rules that hold at both the model and the tool seam: a run with exactly one such call in it.
export { runResult } from 'allium';

import {
  Agent,
  type AgentOptions,
  assistantMessage,
  type Middleware,
  type MiddlewareList,
  type ModelResponse,
  RunError,
  type RunResult,
  type ToolResult,
  textOf,
  tool,
} from 'allium';
import { failWith, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

export type CallSeam = 'model' | 'tool';
export const CALL_SEAMS: readonly CallSeam[] = ['model', 'tool'];

/** What the model or tool does in one call: answer, throw, or wait for its signal. */
export type Step = string | Error | typeof HANG;
export const HANG = Symbol('hang');

interface Outcome {
  /** What the call came to, as the next turn or the caller sees it. */
  readonly text: string;
  /** The call ended in an error: of the run at the model seam, as a result at the tool seam. */
  readonly failed: boolean;
  /** Why the run failed: the very object that was thrown. */
  readonly cause: unknown;
  readonly result: RunResult;
}

export interface Trial {
  readonly agent: Agent;
  /** How often the model or tool itself was called. */
  readonly calls: number;
  /** How often one of those calls was cancelled through its signal. */
  readonly aborted: number;
  run(): Promise<Outcome>;
}

export function trial(
  seam: CallSeam,
  middleware: MiddlewareList,
  steps: readonly Step[] = ['ok'],
  options: Partial<AgentOptions> = {},
): Trial {
  const made = seam === 'model' ? modelTrial(steps) : toolTrial(steps);
  const agent = new Agent({ ...made.options, ...options, middleware });
  return {
    agent,
    get calls() {
      return made.calls();
    },
    get aborted() {
      return made.aborted();
    },
    run: async () => outcomeOf(seam, agent),
  };
}

interface Made {
  readonly options: AgentOptions;
  calls(): number;
  aborted(): number;
}

function modelTrial(steps: readonly Step[]): Made {
  const model = scriptedModel(
    steps.map((step) => (step === HANG ? hang() : typeof step === 'string' ? text(step) : failWith(step))),
  );
  return { options: { model }, calls: () => model.requests.length, aborted: () => model.aborted };
}

function toolTrial(steps: readonly Step[]): Made {
  let calls = 0;
  let aborted = 0;
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: z.object({ n: z.number().default(1) }),
    async execute(_, ctx) {
      const step = steps[calls++];
      if (step === undefined)
        throw new Error(`The tool was called ${calls} times, but its script has ${steps.length} steps.`);
      if (typeof step === 'string') return step;
      if (step !== HANG) throw step;
      return new Promise<string>((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => {
          aborted++;
          reject(ctx.signal.reason);
        });
      });
    },
  });
  const model = scriptedModel([toolCalls({ name: 'work' }), text('done')]);
  return { options: { model, tools: [work] }, calls: () => calls, aborted: () => aborted };
}

async function outcomeOf(seam: CallSeam, agent: Agent): Promise<Outcome> {
  try {
    const result = await agent.run('go');
    const message = result.messages.find(({ role }) => role === (seam === 'tool' ? 'tool' : 'assistant'));
    const failed = message?.role === 'tool' && message.isError;
    return { text: message ? textOf(message) : '', failed, cause: undefined, result };
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    return { text: error.message, failed: true, cause: error.cause, result: error.result };
  }
}

// biome-ignore lint/suspicious/noExplicitAny: layers of either seam are written the same way
type Any = any;

export interface LayerParts extends Omit<Middleware, 'name'> {
  wrap?(ctx: Any, next: (override?: Any) => Promise<Any>): unknown;
  before?(ctx: Any): unknown;
  after?(ctx: Any): unknown;
}

/** A middleware with `wrap`, `before` and `after` at one seam. */
export function layerAt(
  seam: CallSeam | 'run',
  name: string,
  { wrap, before, after, ...rest }: LayerParts,
): Middleware {
  const at = seam === 'run' ? 'Run' : seam === 'model' ? 'Model' : 'Tool';
  return {
    name,
    ...rest,
    ...(wrap && { [`wrap${at}`]: wrap }),
    ...(before && { [`before${at}`]: before }),
    ...(after && { [`after${at}`]: after }),
  };
}

/** A result a layer could set itself. */
export function answerAt(seam: CallSeam, content: string): ModelResponse | ToolResult {
  return seam === 'model'
    ? assistantMessage(content)
    : { content: [{ type: 'text', text: content }], isError: false };
}
