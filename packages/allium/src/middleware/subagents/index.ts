/** A tool that hands a task to another agent, which works on it in a session of its own and answers with its result. */

import {
  type AgentEvent,
  type Awaitable,
  defineMiddleware,
  type Middleware,
  type MiddlewareList,
  type Model,
  type Tool,
  type ToolContext,
  type ToolResult,
  tool,
  toolResult,
} from '../../index.js';
import {
  childResult,
  childToolTags,
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  objectInput,
  readOptions,
  runChild,
} from '../../kit/index.js';
import { Children } from './children.js';
import { eventSummary, listener } from './events.js';
import { AGENTS, MIDDLEWARE, TOOLS, TRACER } from './kinds.js';

/** One kind of sub-agent. */
export interface SubagentSpec {
  /** @default its key in `agents` */
  readonly name?: string;
  /** What it is good at. Shown to the model that chooses. */
  readonly description: string;
  readonly systemPrompt: string;
  /** @default `defaultModel` */
  readonly model?: Model;
  /** Its tools, besides the shared ones; a tool of the same name replaces a shared one. */
  readonly tools?: readonly Tool[];
  /** Its middleware, inside the inherited ones. */
  readonly middleware?: MiddlewareList;
}

/** The `details` of a result. */
export interface SubagentResult {
  /** The id of the session it worked in. */
  readonly agentId: string;
  readonly text: string;
  /** What `mapEvent` made of its events, at most 200. */
  readonly events: readonly unknown[];
  /** Why there is no proper answer. */
  readonly error?: string;
}

export const OPTIONS = {
  /**
   * Kinds of sub-agents, by type: `{ name, description, systemPrompt, model, tools, middleware }`, of which
   * `description` and `systemPrompt` are required. `general-purpose` always exists; list it here to change
   * it. @default {}
   */
  agents: kinds.withDefault(AGENTS, {}),
  /** The model of sub-agents that have none of their own. @default the model of the agent that calls */
  defaultModel: kinds.model<Model>(),
  /** Tools of every sub-agent; a tool of the same name in `tools` replaces one. @default [] */
  sharedTools: kinds.withDefault(TOOLS, []),
  /**
   * Middleware of every sub-agent, outside its own: approval, limits, tracing. Sub-agents inherit nothing
   * from the parent by themselves except its guards. @default []
   */
  inheritMiddleware: kinds.withDefault(MIDDLEWARE, []),
  /**
   * Whether the guards of the calling agent also judge in sub-agents, after their own; `explain()` warns if
   * not. @default true
   */
  inheritGuards: kinds.withDefault(kinds.flag, true),
  /**
   * Names of tools no sub-agent gets, from any source: shared, own, of middleware, added by a layer, resolved
   * by a hook. `'subagent'` keeps sub-agents from having sub-agents. @default []
   */
  excludeTools: kinds.withDefault(kinds.listOf(kinds.text, 'a list of names of tools'), []),
  /** How deep sub-agents may start sub-agents; at the bottom the tool is not offered. @default 3 */
  maxDepth: kinds.withDefault(kinds.integer(1), 3),
  /** How many sub-agents of one run work at once; more calls wait. @default 4 */
  maxConcurrent: kinds.withDefault(kinds.integer(1), 4),
  /**
   * What `onEvent` and `details.events` get of an event: JSON, or undefined to leave it out. @default a short form of
   * turns, answers, tool results and ends
   */
  mapEvent: kinds.withDefault(kinds.func<(event: AgentEvent, agentId: string) => unknown>(), eventSummary),
  /**
   * Called with each event of a sub-agent, as it happens.
   *
   * Contract: awaited, in order for each sub-agent, unless the call is aborted. If it or `mapEvent` throws, a
   * `custom` event `subagent_event_failed` says so, and nothing else changes.
   */
  onEvent: kinds.func<(agentId: string, payload: unknown) => Awaitable<void>>(),
  /**
   * A tracing middleware, outermost in every sub-agent. If it is the parent's own instance, `ctx.parentRunId` leads
   * it to the caller.
   */
  tracer: TRACER,
  ...named('subagents'),
} satisfies Fields;

export interface SubagentsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** The name of the tool. */
const TOOL = 'subagent';
const GENERAL = 'general-purpose';

const GENERAL_PURPOSE: SubagentSpec = {
  description: 'Any task of several steps that no other type is made for.',
  systemPrompt:
    'You work on one task for another agent. Do it completely, with the tools you have. Your last answer is all that the other agent will see: put everything into it that was asked for.',
};

/**
 * Gives the agent a tool `subagent`, which runs one task in a child agent and returns its final text.
 *
 * @example
 * subagents({
 *   agents: { reader: { description: 'Reads long texts.', systemPrompt: 'Read, and answer shortly.', model: small } },
 *   sharedTools: [look],
 * })
 */
export function subagents(options: SubagentsOptions = {}): Middleware {
  const settings = readOptions('subagents', OPTIONS, options);
  const { agents, defaultModel, sharedTools, inheritMiddleware, inheritGuards, excludeTools } = settings;
  const { maxDepth, maxConcurrent, mapEvent, onEvent, tracer, name, madeWith } = settings;

  const specs = new Map(Object.entries({ [GENERAL]: GENERAL_PURPOSE, ...agents }));
  const outer = tracer ? [tracer, inheritMiddleware] : [inheritMiddleware];
  const nests = !excludeTools.includes(TOOL);
  const made = defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    suspends: true,
    extraLlmCalls: () => modelsOf(specs, defaultModel),
    tools: [subagentTool(specs, maxConcurrent, childToolTags(inheritGuards), delegate)],
  });
  const children = new Children({ defaultModel, sharedTools, excludeTools, outer });
  for (const spec of specs.values()) children.check(spec, nests && maxDepth > 1 ? [made] : []);
  return made;

  async function delegate(task: Task, ctx: ToolContext): Promise<ToolResult> {
    const spec = specs.get(task.subagent_type);
    if (!spec) return unknownType(task.subagent_type, [...specs.keys()]);
    if (ctx.depth >= maxDepth) return tooDeep(maxDepth);
    // At the deepest level there are no further sub-agents.
    const inner = nests && ctx.depth + 1 < maxDepth ? [made] : [];
    const agent = children.of(ctx.agent, task.subagent_type, spec, inner);
    const { events, onEvent: told } = listener(ctx, mapEvent, onEvent);
    const outcome = await runChild(ctx, { agent, input: promptOf(task), onEvent: told, inheritGuards });
    return childResult(outcome, events);
  }
}

// ── The tool ─────────────────────────────────────────────────────────────────────────────────────────────────

type Task = Readonly<Record<'name' | 'role' | 'task' | 'prompt' | 'subagent_type', string>>;

function subagentTool(
  specs: ReadonlyMap<string, SubagentSpec>,
  concurrency: number,
  tags: readonly string[],
  execute: (task: Task, ctx: ToolContext) => Promise<ToolResult>,
): Tool {
  const lines = [...specs].map(([type, { description }]) => `- ${type}: ${description}`);
  return tool({
    name: TOOL,
    description: [
      'Hands one task to another agent. It works by itself, sees nothing of this conversation, and answers once.',
      'Several calls in one answer work side by side. Types:',
      ...lines,
    ].join('\n'),
    input: objectInput<Task>({
      name: { type: 'text', description: 'A short name for the agent.' },
      role: { type: 'text', description: 'Who it is to be, in a few words.', default: '' },
      task: { type: 'text', description: 'The task in one line.' },
      prompt: { type: 'text', description: 'Everything it needs to know, and what to answer with.' },
      subagent_type: {
        type: 'text',
        description: 'The type of agent.',
        oneOf: [...specs.keys()],
        default: GENERAL,
      },
    }),
    concurrency,
    tags,
    // Called again, it continues the same child, so it is never in doubt.
    onInDoubt: 'retry',
    execute,
  });
}

/** The system prompt stays the same for all tasks of a type: prompt caches stay valid. */
function promptOf({ name, role, task, prompt }: Task): string {
  return `You are "${name}"${role && `, ${role}`}.\nTask: ${task}\n\n${prompt}`;
}

function unknownType(type: string, types: readonly string[]): ToolResult {
  return toolResult({
    isError: true,
    content: `There is no subagent_type ${JSON.stringify(type)}. Types: ${types.join(', ')}.`,
  });
}

function tooDeep(maxDepth: number): ToolResult {
  return toolResult({
    isError: true,
    content: `Sub-agents may nest ${maxDepth} deep, and this agent is at the bottom. Do the task here.`,
  });
}

function* modelsOf(
  specs: ReadonlyMap<string, SubagentSpec>,
  defaultModel: Model | undefined,
): Iterable<Model> {
  const all = [defaultModel, ...[...specs.values()].map(({ model }) => model)];
  yield* new Set(all.filter((model) => model !== undefined));
}
