/** Keeps large sets of tools out of requests: the model sees a catalogue and loads the groups it needs. */
import {
  type Context,
  defineMiddleware,
  defineState,
  isControl,
  type Middleware,
  type ModelContext,
  type StateCell,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolResult,
  tool,
  toolResult,
  toolSpec,
} from '../../index.js';
import {
  type Fields,
  type Kind,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  objectInput,
  readOptions,
  safeErrorMessage,
  wasToolOffered,
} from '../../kit/index.js';
import { didYouMean } from '../../own-tools/answers.js';
import { catalogue, checkGroups, duplicate, LoadedTools, type ToolGroup } from './groups.js';

export type { ToolGroup } from './groups.js';

export const OPTIONS = {
  /** Groups `{ id, title, description, toolNames, load }`; each tool may be in one group only. */
  groups: kinds.required({ ...(kinds.list as Kind<readonly ToolGroup[]>), expected: 'a list of groups' }),
  /**
   * `dispatch`: what the model sees never changes; it calls loaded tools through `deferred_tool_call`. `inject`:
   * loaded tools are added to the tools of the request. @default 'dispatch'
   */
  strategy: kinds.withDefault(kinds.oneOf('dispatch', 'inject'), 'dispatch'),
  /** Sessions whose loaded tools are kept in memory; beyond that, loaders run again: an integer ≥ 1. @default 1000 */
  maxSessions: kinds.withDefault(kinds.integer(1), 1000),
  ...named('deferred-tools'),
} satisfies Fields;

export interface DeferredToolsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const LOAD = 'load_tools';
const DISPATCH = 'deferred_tool_call';

const HOW = {
  dispatch: `There are more tools than those you were given, in groups. To use one, call ${LOAD} with the ids of the groups you need: it returns what their tools take. Then call ${DISPATCH} with the name of the tool and its arguments.`,
  inject: `There are more tools than those you were given, in groups. To use one, call ${LOAD} with the ids of the groups you need. Their tools are then among yours.`,
} as const;

/**
 * Shows the model a catalogue of tool groups instead of every schema. Everything that judges, wraps or runs a call of
 * a deferred tool sees a call of the real tool.
 *
 * @example
 * new Agent({ model, middleware: [deferredTools({ groups: [billing] })] });
 */
export function deferredTools(options: DeferredToolsOptions): Middleware {
  const { groups, strategy, maxSessions, name, madeWith } = readOptions('deferredTools', OPTIONS, options);
  const owners = checkGroups(groups, [LOAD, DISPATCH]);
  if (groups.length === 0) return defineMiddleware({ name, madeWith });

  const cell = defineState<readonly string[]>({ name: 'loaded', scope: 'session', initial: [] });
  const deferred: Deferred = { groups, owners, cell, loads: new LoadedTools(maxSessions) };
  const text = catalogue(groups, HOW[strategy]);
  const clashes = clashCheck(owners);
  const transformSystemPrompt = (prompt: string, ctx: ModelContext): string => {
    clashes(ctx.tools);
    return prompt === '' ? text : `${prompt}\n\n${text}`;
  };
  const load = loadTool(deferred, strategy);
  const shared = {
    name,
    madeWith,
    looksBack: 0,
    brings: [...owners.keys()],
    state: [cell],
    // Not in the tool: `replay` answers in its place.
    afterTool(ctx: ToolContext): void {
      if (ctx.is(load)) for (const id of loadedBy(ctx.result)) remember(cell, id, ctx);
    },
  };
  if (strategy === 'dispatch') {
    const dispatch = dispatchTool(deferred);
    return defineMiddleware({
      ...shared,
      tools: [load, dispatch],
      transformSystemPrompt,
      // Not a tool that a layer has removed from the request: it doesn't exist for this call.
      resolveToolCall: (call, ctx) =>
        ctx.is(dispatch) ? rewritten(deferred, dispatch, call, ctx) : undefined,
    });
  }
  return defineMiddleware({
    ...shared,
    tools: [load],
    // A rule and not a layer: calls that other middleware make for themselves don't get these tools.
    async transformSystemPrompt(prompt, ctx) {
      const made = transformSystemPrompt(prompt, ctx);
      await offer(deferred, ctx);
      return made;
    },
    resolveToolCall: (call, ctx) => reopened(deferred, call, ctx),
  });
}

interface Deferred {
  readonly groups: readonly ToolGroup[];
  readonly owners: ReadonlyMap<string, ToolGroup>;
  /** The ids of the groups a session has loaded, in that order. */
  readonly cell: StateCell<readonly string[]>;
  readonly loads: LoadedTools;
}

/** Only now is it known which deferred tools share a name with a tool of the agent. Each list is checked once. */
function clashCheck(owners: ReadonlyMap<string, ToolGroup>): (tools: readonly Tool[]) => void {
  const fine = new WeakSet<readonly Tool[]>();
  return (tools) => {
    if (fine.has(tools)) return;
    for (const { name } of tools) {
      const group = owners.get(name);
      if (group) throw duplicate(name, group.id, 'the agent');
    }
    fine.add(tools);
  };
}

// ── load_tools ───────────────────────────────────────────────────────────────────────────────────────────────

function loadTool(deferred: Deferred, strategy: 'dispatch' | 'inject'): Tool {
  return tool({
    name: LOAD,
    description:
      strategy === 'dispatch'
        ? 'Loads groups of tools from the catalogue and returns the schemas of their tools.'
        : 'Loads groups of tools from the catalogue: from then on their tools are among yours.',
    input: objectInput<{ groups: readonly string[] }>({
      groups: { type: 'texts', description: 'Ids of groups in the catalogue.', min: 1 },
    }),
    // Loading again returns the same, so after a crash it may be repeated.
    idempotent: true,
    async execute(args, ctx): Promise<ToolResult> {
      const parts = await Promise.all(
        [...new Set(args.groups)].map((id) => loadGroup(deferred, id, ctx, strategy)),
      );
      return toolResult({
        content: parts.map(({ text }) => text).join('\n\n'),
        details: { loaded: parts.filter(({ failed }) => !failed).map(({ id }) => id) },
        isError: parts.every(({ failed }) => failed),
      });
    },
  });
}

/** The ids of groups that a result of `load_tools` says are loaded. */
function loadedBy(result: ToolResult | undefined): readonly string[] {
  const { loaded } = (result?.details ?? {}) as { loaded?: unknown };
  return Array.isArray(loaded) ? loaded.filter((id) => typeof id === 'string') : [];
}

async function loadGroup(
  deferred: Deferred,
  id: string,
  ctx: ToolContext,
  strategy: 'dispatch' | 'inject',
): Promise<{ id: string; text: string; failed: boolean }> {
  const group = deferred.groups.find((one) => one.id === id);
  if (!group) {
    const ids = deferred.groups.map((one) => one.id);
    return {
      id,
      text: `There is no group "${id}".${didYouMean(id, ids)} Groups: ${ids.join(', ')}.`,
      failed: true,
    };
  }
  try {
    const tools = await deferred.loads.load(group, ctx);
    if (strategy === 'inject')
      return {
        id,
        text: `Group "${id}" is loaded. Now among your tools: ${group.toolNames.join(', ')}.`,
        failed: false,
      };
    const specs = group.toolNames.map((name) => JSON.stringify(toolSpec(tools.get(name)!)));
    return { id, text: `Group "${id}", to be called with ${DISPATCH}:\n${specs.join('\n')}`, failed: false };
  } catch (error) {
    if (isControl(error)) throw error;
    return { id, text: messageOf(error), failed: true };
  }
}

function remember(cell: Deferred['cell'], id: string, ctx: Context): void {
  if (!ctx.state.get(cell).includes(id))
    ctx.state.update(cell, (ids) => (ids.includes(id) ? ids : [...ids, id]));
}

// ── dispatch ─────────────────────────────────────────────────────────────────────────────────────────────────

interface DispatchArgs {
  readonly tool_name: string;
  readonly arguments?: object;
}

/** Only runs if the call could not be turned into a call of the real tool, and says why. */
function dispatchTool({ owners }: Deferred): Tool<DispatchArgs, DispatchArgs> {
  return tool({
    name: DISPATCH,
    description: `Calls a tool of the catalogue. ${LOAD} tells what its arguments are.`,
    input: objectInput<DispatchArgs>({
      tool_name: { type: 'text', description: 'The name of the tool.' },
      arguments: { type: 'object', description: 'The arguments of the tool.', optional: true },
    }),
    execute({ tool_name: name }): ToolResult {
      return toolResult({
        content: `There is no tool "${name}" in the catalogue.${didYouMean(name, owners.keys())} If it is one of your own tools, call it directly.`,
        isError: true,
      });
    },
  });
}

/** The call of the real tool that a `deferred_tool_call` asks for; undefined if it asks for none. */
async function rewritten(
  deferred: Deferred,
  dispatch: Tool<DispatchArgs, DispatchArgs>,
  call: ToolCall,
  ctx: ToolContext,
): Promise<{ toolCall: ToolCall; tool: Tool } | undefined> {
  const checked = await dispatch.input['~standard'].validate(json(call.arguments));
  // The kernel finds what is wrong with it, too, and tells the model.
  if (checked.issues) return undefined;
  const { tool_name: name, arguments: args = {} } = checked.value;
  const found = await find(deferred, name, ctx);
  return found && { toolCall: { ...call, name, arguments: JSON.stringify(args) }, tool: found };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A deferred tool, loaded if necessary: the model may know it from earlier, and its arguments are validated. */
async function find(deferred: Deferred, name: string, ctx: ToolContext): Promise<Tool | undefined> {
  const group = deferred.owners.get(name);
  if (!group) return undefined;
  const tools = await deferred.loads.load(group, ctx);
  remember(deferred.cell, group.id, ctx);
  return tools.get(name);
}

// ── inject ───────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Adds the tools of loaded groups to the request, in the order of loading, so that existing ones keep their place.
 */
async function offer(deferred: Deferred, ctx: ModelContext): Promise<void> {
  const ids = ctx.state.get(deferred.cell);
  if (ids.length === 0) return;
  const session = deferred.loads.of(ctx);
  const base = ctx.tools;
  if (session.joined?.base !== base || session.joined.ids !== ids) {
    const loaded = await Promise.all(ids.map((id) => offered(deferred, id, ctx)));
    const tools = Object.freeze([...base, ...loaded.flatMap((one) => one ?? [])]);
    // A group that could not be loaded is tried again with the next request.
    session.joined = loaded.includes(undefined) ? undefined : { base, ids, tools };
    ctx.tools = tools;
  } else ctx.tools = session.joined.tools;
}

/**
 * After a resume in another process, loads the groups here. One that can't be loaded is left out, and an event says
 * so.
 */
async function offered(
  deferred: Deferred,
  id: string,
  ctx: ModelContext,
): Promise<readonly Tool[] | undefined> {
  const group = deferred.groups.find((one) => one.id === id);
  // A later version of the program may not have it any more.
  if (!group) return [];
  try {
    return [...(await deferred.loads.load(group, ctx)).values()];
  } catch (error) {
    if (isControl(error)) throw error;
    ctx.emit('deferred-tools', { group: id, error: safeErrorMessage(error, ctx) });
    return undefined;
  }
}

/**
 * For calls that are still open after a resume: the kernel doesn't know tools that were injected before it. A tool
 * that was not offered even then was removed from the request on purpose.
 */
async function reopened(
  deferred: Deferred,
  call: ToolCall,
  ctx: ToolContext,
): Promise<{ toolCall: ToolCall; tool: Tool } | undefined> {
  const group = deferred.owners.get(call.name);
  if (ctx.tool || !group || !wasToolOffered(ctx, call.name)) return undefined;
  const found = await find(deferred, call.name, ctx);
  return found && { toolCall: call, tool: found };
}
