/** Groups of deferred tools: what they declare, and what their loaders return. */
import { AlliumError, type Context, isControl, type Tool } from '../../index.js';
import { checkFunction, checkKeys, invalidOption, isTool, messageOf } from '../../kit/index.js';
import { untilAborted } from '../../own-tools/until-aborted.js';

export interface ToolGroup {
  /** Its name for the model: 1 to 64 letters, digits, `_`, `-` or `.`. */
  readonly id: string;
  readonly title: string;
  /** When to use it, for the model. */
  readonly description: string;
  /** The names of all its tools, known before they are loaded. */
  readonly toolNames: readonly string[];
  /**
   * Returns the tools. Contract: called once per session and process, when a tool is first needed; calls that come
   * meanwhile wait for it. An abort of one run doesn't reach it, since others may wait too. If it throws, the model
   * reads that as a result, and the next call tries again.
   */
  load(session: {
    readonly sessionId: string;
    readonly tenant: string | undefined;
  }): readonly Tool[] | Promise<readonly Tool[]>;
}

/** Throws for groups that can't be used. Returns the group of each tool. */
export function checkGroups(
  groups: readonly ToolGroup[],
  taken: readonly string[],
): ReadonlyMap<string, ToolGroup> {
  if (!Array.isArray(groups)) throw invalidOption('groups', 'a list of groups', groups);
  const ids = new Set<string>();
  const owners = new Map<string, ToolGroup>();
  for (const [i, group] of groups.entries()) {
    checkGroup(`groups[${i}]`, group);
    const { id, toolNames } = group;
    if (ids.has(id)) throw invalidOption(`groups[${i}].id`, 'an id that no other group has', id);
    ids.add(id);
    for (const name of toolNames) {
      const other = owners.get(name);
      if (other || taken.includes(name))
        throw duplicate(name, id, other ? `group "${other.id}"` : 'deferredTools() itself');
      owners.set(name, group);
    }
  }
  return owners;
}

function checkGroup(where: string, group: ToolGroup): void {
  if (typeof group !== 'object' || group === null)
    throw invalidOption(where, 'a group { id, title, description, toolNames, load }', group);
  checkKeys(where, group, ['id', 'title', 'description', 'toolNames', 'load']);
  const { id, title, description, toolNames, load } = group;
  if (typeof id !== 'string' || !/^[\w.-]{1,64}$/.test(id))
    throw invalidOption(`${where}.id`, '1 to 64 letters, digits, "_", "-" or "."', id);
  for (const [key, text] of Object.entries({ title, description }))
    if (typeof text !== 'string' || text.trim() === '')
      throw invalidOption(`${where}.${key}`, 'non-empty text', text);
  const named = Array.isArray(toolNames) && toolNames.length > 0;
  if (!named || !toolNames.every((name) => typeof name === 'string' && /^[\w-]{1,64}$/.test(name)))
    throw invalidOption(`${where}.toolNames`, 'a non-empty list of tool names', toolNames);
  checkFunction(`${where}.load`, load);
}

export function duplicate(name: string, id: string, other: string): AlliumError {
  return new AlliumError(
    'DUPLICATE_TOOL',
    `Tool "${name}" of deferred group "${id}" is also a tool of ${other}. Rename one of them.`,
    { data: { tool: name, group: id } },
  );
}

/** The same text as long as the groups are the same, whatever is loaded, so that prompt caches stay valid. */
export function catalogue(groups: readonly ToolGroup[], how: string): string {
  const lines = groups.map(
    ({ id, title, description, toolNames }) =>
      `- ${id} (${oneLine(title)}): ${oneLine(description)} Tools: ${toolNames.join(', ')}`,
  );
  return `## More tools\n\n${how}\n\n${lines.join('\n')}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** What has been loaded for one session. */
export interface LoadedSession {
  readonly groups: Map<string, Promise<ReadonlyMap<string, Tool>>>;
  /** The list that was offered last, and what it was made from. */
  joined:
    | { readonly base: readonly Tool[]; readonly ids: readonly string[]; readonly tools: readonly Tool[] }
    | undefined;
}

/**
 * Tools are code and can't be journaled, so they are kept here, by agent and session. If there are too many sessions,
 * the least recently used is forgotten, and its loaders run again.
 */
export class LoadedTools {
  private readonly agents = new WeakMap<object, Map<string, LoadedSession>>();

  constructor(private readonly maxSessions: number) {}

  of({ agent, tenant, sessionId }: Context): LoadedSession {
    const sessions = this.agents.get(agent) ?? new Map<string, LoadedSession>();
    this.agents.set(agent, sessions);
    const key = JSON.stringify([tenant ?? null, sessionId]);
    const session = sessions.get(key) ?? { groups: new Map(), joined: undefined };
    // Set again, so that the first one is the least recently used.
    sessions.delete(key);
    sessions.set(key, session);
    if (sessions.size > this.maxSessions) sessions.delete(sessions.keys().next().value!);
    return session;
  }

  /** The tools of a group, by name. Calls that come while it is being loaded wait for the same load. */
  load(group: ToolGroup, ctx: Context): Promise<ReadonlyMap<string, Tool>> {
    const { groups } = this.of(ctx);
    let loading = groups.get(group.id);
    if (!loading) {
      const { sessionId, tenant } = ctx;
      loading = (async () => checked(group, await group.load({ sessionId, tenant })))();
      groups.set(group.id, loading);
      // A failure isn't kept: the next call tries again.
      loading.catch(() => groups.delete(group.id));
    }
    return untilAborted(
      loading.catch((error) => {
        throw isControl(error) ? error : notLoaded(group, error);
      }),
      ctx.signal,
    );
  }
}

function notLoaded({ id }: ToolGroup, cause: unknown): Error {
  return new Error(`Group "${id}" could not be loaded: ${messageOf(cause)}`, { cause });
}

function checked({ id, toolNames }: ToolGroup, tools: unknown): ReadonlyMap<string, Tool> {
  if (!Array.isArray(tools) || !tools.every(isTool))
    throw invalidOption(`the result of load() of group "${id}"`, 'a list of tools', tools);
  const byName = new Map<string, Tool>(tools.map((tool: Tool) => [tool.name, tool]));
  const missing = toolNames.filter((name) => !byName.has(name));
  const surplus = [...byName.keys()].filter((name) => !toolNames.includes(name));
  if (missing.length === 0 && surplus.length === 0) return byName;
  const problems = [
    ...(missing.length > 0 ? [`it lacks ${missing.join(', ')}`] : []),
    ...(surplus.length > 0 ? [`it also has ${surplus.join(', ')}`] : []),
  ];
  throw new AlliumError(
    'INVALID_OPTION',
    `load() returned other tools than \`toolNames\` lists: ${problems.join(', and ')}. Make both agree.`,
    { data: { group: id, missing, surplus } },
  );
}
