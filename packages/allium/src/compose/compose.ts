/** Turns a middleware list into a plan: for each seam, rule and guard point, the functions that exist, in order. */

import { guardsResponses } from '../kernel/guards/response-gate.js';
import type { ComposedPlan } from '../kernel/layers/onion.js';
import { AlliumError, invalidOption, isThenable, shown } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { checkFields, checkValue, type Fields, type Kind } from '../kernel/lib/shapes.js';
import { type GuardPoint, POINTS } from '../kernel/protocol/guard.js';
import type {
  GuardTable,
  Middleware,
  MiddlewareList,
  Plan,
  PlannedGuard,
  PlannedMiddleware,
} from '../kernel/protocol/middleware.js';
import {
  type Layer,
  type PlannedHook,
  RULE_HOOKS,
  type RuleHook,
  type Seam,
} from '../kernel/protocol/plan.js';
import type { StateCell } from '../kernel/protocol/state.js';
import { isTool, type Tool, toolSpecs } from '../kernel/protocol/tool.js';
import { checkMembers, insteadOfTool, LAYER_HOOKS } from './check-middleware.js';
import { looksBack } from './looks-back.js';
import { checkOrder } from './order.js';
import { twinsOf } from './twins.js';

/** Decision hooks of the agent itself. Each replaces the composed hook of its name. */
export type ExplicitHooks = Pick<Middleware, RuleHook>;

export interface ComposeOptions {
  /** Tools in addition to those of the middleware. */
  readonly tools?: readonly Tool[];
  /** Cells that belong to no middleware. */
  readonly state?: readonly StateCell<any>[];
  readonly hooks?: ExplicitHooks;
  /** Names of guarding middleware whose hooks may be replaced. */
  readonly replaces?: readonly string[];
}

const TOOLS: Kind = kinds.kind('a list', () => true, {
  inside: (value, option) => {
    if (Array.isArray(value)) return undefined;
    const { message, data } = invalidOption(option, 'a list', value);
    return new AlliumError('INVALID_OPTION', `${message} ${insteadOfTool(value)}`, { data });
  },
});
const OPTIONS: Fields = {
  tools: TOOLS,
  state: kinds.list,
  hooks: kinds.record,
  replaces: kinds.names,
} satisfies Record<keyof ComposeOptions, Kind>;

/** Composes middleware. The first in the list is outermost for layers and first for rules. Throws if the list can't work. */
export function compose(list: MiddlewareList, options?: ComposeOptions): ComposedPlan {
  return composeAs(list, options);
}

/** `names`: names for the middleware, in order. */
export function composeAs(
  list: MiddlewareList,
  options: ComposeOptions = {},
  names: readonly string[] = [],
): ComposedPlan {
  checkFields('compose()', OPTIONS, options);
  const middleware = named(flatten(list), names);
  checkOrder(middleware);
  const layersAt = (seam: Seam): Layer[] => middleware.flatMap((planned) => layersOf(planned, seam));
  const layers = { run: layersAt('run'), model: layersAt('model'), tool: layersAt('tool') };
  const { rules, replaced } = rulesOf(middleware, options);
  const tools = toolsOf(middleware, options.tools ?? []);
  const guards = guardsOf(middleware);
  const gated = guardsResponses(guards);
  const looksAtResponses = gated || any(layers.model, rules.afterModelResponse);
  return Object.freeze({
    middleware,
    names: Object.freeze(middleware.map(({ name }) => name)),
    layers,
    onions: { run: undefined, model: undefined, tool: undefined },
    rules,
    guards,
    restores: middleware.flatMap((one) => (one.middleware.guard?.restore ? plannedGuard(one) : [])),
    guardsResponses: gated,
    looksAtResponses,
    traces: middleware.some((one) => one.middleware.traces === true),
    looksBack: looksBack(middleware, rules),
    decidesOnCalls: any(rules.resolveToolCall, rules.beforeToolCall, guards['tool-args']),
    runOptions: Object.freeze([...new Set(middleware.flatMap((one) => one.middleware.runOptions ?? []))]),
    tools,
    specs: toolSpecs(tools),
    toolsByName: new Map(tools.map((tool) => [tool.name, tool])),
    twins: twinsOf(middleware),
    cells: cellsOf(middleware, options.state ?? []),
    replaced,
  });
}

function any(...lists: (readonly unknown[])[]): boolean {
  return lists.some((list) => list.length > 0);
}

/** The middleware of nested lists and pipelines, in order. `option`: the name of the list, for errors. */
export function flatten(
  list: MiddlewareList,
  option = 'middleware',
  above: readonly unknown[] = [],
): Middleware[] {
  if (isPipeline(list)) return flatten(list.layers, option, above);
  if (!Array.isArray(list)) {
    const hint = typeof list === 'object' && list !== null ? ' Put it into a list: [it].' : '';
    throw new AlliumError(
      'INVALID_MIDDLEWARE',
      `Expected \`${option}\` to be a list or a pipeline, got ${shown(list)}.${hint}`,
    );
  }
  return [...list].flatMap((item: unknown, index): Middleware[] => {
    if (Array.isArray(item) || isPipeline(item)) {
      if (item === list || above.includes(item))
        throw new AlliumError('INVALID_MIDDLEWARE', `${option}[${index}] is a list that contains itself.`);
      return flatten(item, `${option}[${index}]`, [...above, list]);
    }
    if (typeof item !== 'object' || item === null || isThenable(item)) {
      throw new AlliumError(
        'INVALID_MIDDLEWARE',
        `${option}[${index}] is ${shown(item)}, not a middleware object.${hintFor(item)}`,
      );
    }
    checkMembers(item as Middleware, option === 'middleware' ? `at index ${index}` : `${option}[${index}]`);
    return [item as Middleware];
  });
}

function hintFor(item: unknown): string {
  if (isThenable(item)) return ' Await it first.';
  if (typeof item === 'function' && /^class\b/.test(String(item)))
    return ` A class has to be instantiated: write \`new ${item.name || 'Retry'}()\`.`;
  if (typeof item === 'function')
    return item.length >= 2
      ? ' A function of (ctx, next) is a hook of one: write { process: … }, or wrapModel, wrapTool or wrapRun.'
      : ` A factory has to be called: write \`${item.name || 'retry'}()\`, not \`${item.name || 'retry'}\`.`;
  return item === false || item === undefined || item === null
    ? ' To leave one out, spread a list: ...(wanted ? [one] : []).'
    : '';
}

function isPipeline(value: unknown): value is { readonly layers: MiddlewareList } {
  return typeof value === 'object' && value !== null && 'layers' in value && Array.isArray(value.layers);
}

/** Names are unique in a plan: the second `retry` is `retry#2`. */
function named(list: readonly Middleware[], names: readonly string[]): PlannedMiddleware[] {
  const taken = new Set<string>();
  return list.map((middleware, position) => {
    const base = middleware.name ?? `middleware-${position + 1}`;
    let name = names[position] ?? base;
    for (let count = 2; taken.has(name); count++) name = `${base}#${count}`;
    taken.add(name);
    return { name, position, middleware };
  });
}

function bound(middleware: Middleware, hook: string): ((...args: any[]) => any) | undefined {
  const fn = (middleware as Record<string, unknown>)[hook];
  return typeof fn === 'function' ? fn.bind(middleware) : undefined;
}

/** One middleware is one layer: process around before/after around wrap around the catch of `onError`. */
function layersOf({ name, position, middleware }: PlannedMiddleware, seam: Seam): Layer[] {
  const open = middleware.onFail === 'open';
  const sink = middleware.sink === true;
  const layer = (
    kind: Layer['kind'],
    hooks: string[],
    { wrap, before, after, onError }: Partial<Layer>,
  ): Layer => ({ kind, position, name, hooks, open, sink, wrap, before, after, onError });
  const names = LAYER_HOOKS[seam];
  const listed = middleware.seams?.includes(seam) ?? true;
  const process = listed ? bound(middleware, 'process') : undefined;
  const wrap = bound(middleware, names.wrap);
  const [before, after] = [bound(middleware, names.before), bound(middleware, names.after)];
  const onError = listed && seam !== 'run' ? bound(middleware, 'onError') : undefined;
  const layers: Layer[] = [];
  if (process) layers.push(layer('wrap', ['process'], { wrap: process }));
  if (before || after)
    layers.push(
      layer('pair', [...(before ? [names.before] : []), ...(after ? [names.after] : [])], { before, after }),
    );
  if (wrap) layers.push(layer('wrap', [names.wrap], { wrap }));
  if (onError) layers.push(layer('catch', ['onError'], { onError }));
  return layers;
}

function rulesOf(
  middleware: readonly PlannedMiddleware[],
  { hooks = {}, replaces = [] }: ComposeOptions,
): Pick<Plan, 'rules' | 'replaced'> {
  const all = middleware.map(({ name }) => name);
  const unknown = replaces.find((name) => !all.includes(name));
  if (unknown !== undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      `\`replaces\` names ${shown(unknown)}, but no middleware has that name. The names are: ${all.join(', ') || 'none'}.`,
    );
  const rules = {} as Record<RuleHook, PlannedHook[]>;
  const replaced: { hook: RuleHook; names: string[] }[] = [];
  for (const hook of RULE_HOOKS) {
    rules[hook] = middleware.flatMap(({ name, position, middleware: one }) => {
      const fn = bound(one, hook);
      const { onFail, sink = false } = one;
      return fn ? [{ hook, name, position, open: onFail === 'open', sink, fn }] : [];
    });
    const explicit = hooks[hook];
    if (explicit === undefined) continue;
    checkValue(hook, kinds.func(), explicit);
    const names = rules[hook].map(({ name }) => name);
    const guarding = middleware.find(
      ({ name, middleware: one }) =>
        (one.guard || one.traits?.includes('protects')) && names.includes(name) && !replaces.includes(name),
    );
    if (guarding)
      throw new AlliumError(
        'GUARD_REPLACED',
        `\`${hook}\` of the agent would replace that of "${guarding.name}", which guards what happens. Pass yours as a middleware, or allow it with replaces: ['${guarding.name}'].`,
      );
    if (names.length > 0) replaced.push({ hook, names });
    const fn = explicit as PlannedHook['fn'];
    rules[hook] = [{ hook, name: 'agent', position: -1, open: false, sink: false, fn }];
  }
  return { rules, replaced };
}

/** The guards of a plan as middleware for a sub-agent, without those it has itself. */
export function guardsFrom(above: Plan, own: readonly Middleware[]): readonly Middleware[] {
  const guards = new Set(own.map(({ guard }) => guard));
  const names = new Set(own.map(({ name }) => name));
  return above.middleware.flatMap(({ name, middleware: { guard, state, onFail, looksBack: back } }) => {
    if (!guard || guards.has(guard)) return [];
    // Cells are stored under the name of their owner, so it must be unique.
    const inherited = names.has(name) ? `${name} (inherited)` : name;
    return {
      name: inherited,
      guard,
      ...(state && { state }),
      ...(onFail && { onFail }),
      ...(back !== undefined && { looksBack: back }),
    };
  });
}

function guardsOf(middleware: readonly PlannedMiddleware[]): GuardTable {
  const table = Object.fromEntries(POINTS.map((point) => [point, [] as PlannedGuard[]])) as Record<
    GuardPoint,
    PlannedGuard[]
  >;
  for (const one of middleware)
    for (const point of one.middleware.guard?.on ?? []) table[point].push(plannedGuard(one));
  return table;
}

function plannedGuard({ name, position, middleware }: PlannedMiddleware): PlannedGuard {
  return { name, position, guard: middleware.guard!, open: middleware.onFail === 'open' };
}

function toolsOf(middleware: readonly PlannedMiddleware[], own: readonly Tool[]): readonly Tool[] {
  const owners = new Map<string, string>();
  const tools: Tool[] = [];
  const add = (tool: Tool, owner: string): void => {
    if (!isTool(tool))
      throw new AlliumError(
        'INVALID_TOOL',
        `${owner} lists ${shown(tool)} as a tool. ${insteadOfTool(tool)}`,
      );
    const other = owners.get(tool.name);
    if (other)
      throw new AlliumError(
        'DUPLICATE_TOOL',
        `Tool "${tool.name}" is brought by ${other} ${other === owner ? 'twice' : `and by ${owner}`}. Rename one, or leave one out.`,
      );
    owners.set(tool.name, owner);
    tools.push(tool);
  };
  for (const tool of own) add(tool, 'the agent');
  for (const { name, middleware: one } of middleware)
    for (const tool of one.tools ?? []) add(tool, `middleware "${name}"`);
  return Object.freeze(tools);
}

function cellsOf(
  middleware: readonly PlannedMiddleware[],
  own: readonly StateCell<any>[],
): Map<StateCell<any>, string> {
  const cells = new Map<StateCell<any>, string>();
  const add = (cell: StateCell<any>, owner: PlannedMiddleware | undefined): void => {
    if (typeof cell?.name !== 'string' || !('scope' in cell))
      throw new AlliumError(
        'INVALID_STATE',
        `${owner ? `Middleware "${owner.name}"` : 'The agent'} lists ${shown(cell)} in \`state\`. Make cells with defineState({ … }).`,
      );
    const base = owner ? owner.middleware.name : 'agent';
    // A session cell is stored under the name its middleware gave itself, wherever that stands in the list.
    const prefix = cell.scope === 'session' ? base : (owner?.name ?? 'agent');
    const key = prefix === undefined ? cell.name : `${prefix}:${cell.name}`;
    // Middleware may share a cell, which explain() reports; it is stored under the first one's name.
    if (cells.has(cell) && cells.get(cell) !== key) return;
    if ([...cells.values()].includes(key)) {
      const who = base === undefined ? 'without a name' : `named "${base}"`;
      throw new AlliumError(
        'DUPLICATE_STATE',
        `Two middleware ${who} own a cell "${cell.name}". Give each instance a \`name\` of its own, so that their stored values stay apart.`,
      );
    }
    cells.set(cell, key);
  };
  for (const cell of own) add(cell, undefined);
  for (const planned of middleware) for (const cell of planned.middleware.state ?? []) add(cell, planned);
  return cells;
}
