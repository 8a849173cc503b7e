/** Limits how often a run may call the model and its tools. */

import {
  AlliumError,
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelContext,
  syntheticUserMessage,
  type ToolContext,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export const OPTIONS = {
  /**
   * Model calls of a run that pass through here, not counting those of other middleware: an integer ≥ 1. @default no
   * limit
   */
  modelCalls: kinds.integer(1),
  /** Tool calls of a run, all tools together: an integer ≥ 0. @default no limit */
  toolCalls: kinds.integer(0),
  /** Calls of a run by tool name: integers ≥ 0. @default no limit */
  perTool: kinds.recordOf(kinds.integer(0), 'an object of tool names and numbers'),
  /** `stop` ends the run; `tell-model` refuses the call and lets the model go on without it. @default 'stop' */
  onExceed: kinds.withDefault(kinds.oneOf('stop', 'tell-model'), 'stop'),
  ...named('call-limits'),
} satisfies Fields;

export interface CallLimitsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** Tool calls so far. `message` and `counted` say which calls of the latest batch are among them. */
interface ToolCount {
  readonly total: number;
  readonly tools: Readonly<Record<string, number>>;
  readonly message: string;
  readonly counted: readonly string[];
  /** Why the run ends after this batch. */
  readonly over?: string;
}

const NONE: ToolCount = { total: 0, tools: {}, message: '', counted: [] };

/**
 * Counts the calls of each run separately, across resumes too. Calls that fit still run. A call beyond the limit gets
 * a result that says so, and the run ends after its batch or goes on without it.
 *
 * @example
 * new Agent({ model, tools: [search], middleware: [callLimits({ perTool: { search: 1 }, onExceed: 'tell-model' })] });
 */
export function callLimits(options: CallLimitsOptions): Middleware {
  const { modelCalls, toolCalls, perTool, onExceed, name, madeWith } = readOptions(
    'callLimits',
    OPTIONS,
    options,
  );
  if (modelCalls === undefined && toolCalls === undefined && perTool === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      'callLimits() got nothing to limit. Give `modelCalls`, `toolCalls` or `perTool`.',
    );
  const limits = { toolCalls, perTool: { ...perTool } };
  const models = defineState({ name: 'modelCalls', scope: 'run', initial: 0 });
  const tools = defineState<ToolCount>({ name: 'toolCalls', scope: 'run', initial: NONE });
  const countsTools = toolCalls !== undefined || perTool !== undefined;

  function beforeModel(ctx: ModelContext): void {
    // Calls that other middleware make for themselves are not answers of the run, and must not use up the last one.
    if (ctx.caller !== undefined) return;
    const made = ctx.state.get(models);
    if (made >= modelCalls!) ctx.stop('max_turns', `The run has made its ${modelCalls} model calls.`);
    ctx.state.update(models, (count) => count + 1);
    if (onExceed === 'tell-model' && made + 1 === modelCalls) askForAnswer(ctx);
  }

  function beforeToolCall(ctx: ToolContext): { block: true; reason: string } | undefined {
    const { id } = ctx.assistantMessage;
    const call = ctx.toolCall.id;
    const name = ctx.tool?.name ?? ctx.toolCall.name;
    const count = ctx.state.get(tools);
    // Rewritten or edited arguments are judged again, perhaps after a resume: that isn't a second call.
    if (count.message === id && count.counted.includes(call)) return undefined;
    const over = exceeded(count, name, limits);
    if (over === undefined) {
      ctx.state.update(tools, (value) => counted(value, id, call, name));
      return undefined;
    }
    if (onExceed === 'stop') ctx.state.update(tools, (value) => ({ ...value, over }));
    return { block: true, reason: `Not run: ${over} Answer with what you have.` };
  }

  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    mentions: Object.keys(limits.perTool),
    traits: ['protects'],
    // Only what it counts, so that a resume can distinguish it from one that counts something else.
    state: [...(modelCalls === undefined ? [] : [models]), ...(countsTools ? [tools] : [])],
    ...(modelCalls !== undefined && { beforeModel }),
    ...(countsTools && { beforeToolCall }),
    ...(countsTools &&
      onExceed === 'stop' && {
        shouldStopAfterTurn(ctx) {
          const { over } = ctx.state.get(tools);
          if (over !== undefined) ctx.stop('max_tool_calls', over);
        },
      }),
  });
}

function exceeded(
  { total, tools }: ToolCount,
  name: string,
  { toolCalls, perTool }: Pick<CallLimitsOptions, 'toolCalls' | 'perTool'>,
): string | undefined {
  if (toolCalls !== undefined && total >= toolCalls) return `the run has made its ${toolCalls} tool calls.`;
  const own = perTool && Object.hasOwn(perTool, name) ? perTool[name] : undefined;
  if (own !== undefined && (Object.hasOwn(tools, name) ? tools[name]! : 0) >= own)
    return `the run has made its ${own} calls of "${name}".`;
  return undefined;
}

function counted(value: ToolCount, message: string, call: string, name: string): ToolCount {
  const before = Object.hasOwn(value.tools, name) ? value.tools[name]! : 0;
  return {
    ...value,
    total: value.total + 1,
    tools: { ...value.tools, [name]: before + 1 },
    message,
    counted: value.message === message ? [...value.counted, call] : [call],
  };
}

/** The last call that is allowed: the model is told, and can't call any more tools, except one that is its way to answer. */
function askForAnswer(ctx: ModelContext): void {
  const final = ctx.tools.find(({ tags }) => tags?.includes('final-answer'));
  const how = final
    ? `Call "${final.name}" with what you have, and no other tool.`
    : 'Do not call tools: answer with what you have.';
  const note = `This is the last answer you can give. ${how}`;
  ctx.messages = [...ctx.messages, syntheticUserMessage(note, { source: 'call-limits' })];
  if (ctx.tools.length > 0)
    ctx.settings = { ...ctx.settings, toolChoice: final ? { tool: final.name } : 'none' };
}
