/** Turns a middleware list into a plan: per seam, rule and guard point only the functions that exist, in order. */
import { AlliumError, nearest, shown } from './errors.js';
import type { GuardTable, PlannedGuard } from './guards.js';
import type { Layer } from './layers.js';
import { DECLARATIONS, type GuardPoint, LAYER_HOOKS, type Middleware, type MiddlewareList, type Seam } from './middleware.js';
import type { ToolSpec } from './model.js';
import { checkOrder } from './order.js';
import { type PlannedHook, type RuleHook, RULES } from './rules.js';
import type { StateCell } from './state.js';
import type { Tool } from './tool.js';

/** A middleware in a plan, under a name that is unique there. */
export interface PlannedMiddleware {
  readonly name: string;
  readonly position: number;
  readonly middleware: Middleware;
}

export interface Plan {
  readonly middleware: readonly PlannedMiddleware[];
  readonly layers: Readonly<Record<Seam, readonly Layer[]>>;
  readonly rules: Readonly<Record<RuleHook, readonly PlannedHook[]>>;
  readonly guards: GuardTable;
  readonly tools: readonly Tool[];
  readonly toolsByName: ReadonlyMap<string, Tool>;
  readonly specs: readonly ToolSpec[];
  /** Durable name of each declared cell. */
  readonly cells: ReadonlyMap<StateCell<any>, string>;
  /** Hooks given to the agent itself, and whose they replaced. */
  readonly replaced: readonly { readonly hook: RuleHook; readonly names: readonly string[] }[];
}

/** Decision hooks given directly to an agent: each replaces the composed hook of its name. */
export type ExplicitHooks = Pick<Middleware, RuleHook>;

export interface ComposeOptions {
  /** Tools beside those of the middleware. */
  readonly tools?: readonly Tool[];
  /** Cells that belong to no middleware. */
  readonly state?: readonly StateCell<any>[];
  readonly hooks?: ExplicitHooks;
  /** Names of guarding middleware whose hooks may be replaced. */
  readonly replaces?: readonly string[];
}

const SEAMS = ['run', 'model', 'tool'] as const;
const POINTS: readonly GuardPoint[] = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'];
const RULE_HOOKS = Object.keys(RULES) as RuleHook[];
const HOOKS: readonly string[] = [...RULE_HOOKS, ...SEAMS.flatMap((seam) => Object.values(LAYER_HOOKS[seam])), 'process', 'onError'];
/** What other systems call these hooks. */
const ELSEWHERE: Record<string, string> = { onrunstart: 'beforeRun', callnext: 'process', onmodelstart: 'beforeModel', ontoolstart: 'beforeTool' };

/** Composes middleware. First in the list is outermost for layers and first for rules. Throws for what cannot work. */
export function compose(list: MiddlewareList, options: ComposeOptions = {}): Plan {
  const middleware = named(flatten(list));
  checkOrder(middleware);
  const layers: Record<Seam, Layer[]> = { run: [], model: [], tool: [] };
  for (const seam of SEAMS) for (const planned of middleware) layers[seam].push(...layersOf(planned, seam));
  const { rules, replaced } = rulesOf(middleware, options);
  const tools = toolsOf(middleware, options.tools ?? []);
  return Object.freeze({
    middleware,
    layers,
    rules,
    guards: guardsOf(middleware),
    tools,
    toolsByName: new Map(tools.map((tool) => [tool.name, tool])),
    get specs() {
      return specsOf(tools);
    },
    cells: cellsOf(middleware, options.state ?? []),
    replaced,
  });
}

const specs = new WeakMap<readonly Tool[], readonly ToolSpec[]>();

/** How these tools are shown to a model; made once per list. */
export function specsOf(tools: readonly Tool[]): readonly ToolSpec[] {
  let made = specs.get(tools);
  if (!made) {
    made = Object.freeze(tools.map((tool) => tool.spec));
    specs.set(tools, made);
  }
  return made;
}

export function flatten(list: MiddlewareList): Middleware[] {
  if (!Array.isArray(list)) throw new AlliumError('INVALID_MIDDLEWARE', `Expected \`middleware\` to be a list, got ${shown(list)}.`);
  return list.flatMap((item, index): Middleware[] => {
    if (Array.isArray(item)) return flatten(item);
    if (typeof item !== 'object' || item === null) {
      const hint = typeof item === 'function' ? ' A factory has to be called: write `retry()`, not `retry`.' : '';
      throw new AlliumError('INVALID_MIDDLEWARE', `middleware[${index}] is ${shown(item)}, not a middleware object.${hint}`);
    }
    if ('layers' in item && Array.isArray(item.layers)) return flatten(item.layers as MiddlewareList);
    checkMembers(item as Middleware, index);
    return [item as Middleware];
  });
}

function named(list: readonly Middleware[]): PlannedMiddleware[] {
  const seen = new Map<string, number>();
  return list.map((middleware, position) => {
    const base = middleware.name ?? `middleware-${position + 1}`;
    const count = (seen.get(base) ?? 0) + 1;
    seen.set(base, count);
    return { name: count === 1 ? base : `${base}#${count}`, position, middleware };
  });
}

/** A function member that is not a hook but looks like one is a mistake nobody would notice otherwise. */
function checkMembers(middleware: Middleware, index: number): void {
  const who = `Middleware ${middleware.name ? `"${middleware.name}"` : `at index ${index}`}`;
  const fail = (message: string) => new AlliumError('INVALID_MIDDLEWARE', `${who}: ${message}`);
  const record = middleware as Record<string, unknown>;
  let any = false;
  for (const key of memberNames(middleware)) {
    const value = record[key];
    if (HOOKS.includes(key)) {
      if (value === undefined) continue;
      if (typeof value !== 'function') throw fail(`\`${key}\` must be a function, got ${shown(value)}.`);
      any = true;
    } else if ((DECLARATIONS as readonly string[]).includes(key)) any = true;
    else if (typeof value === 'function') {
      const meant = ELSEWHERE[key.replace(/[-_]/g, '').toLowerCase()] ?? nearest(key, HOOKS);
      if (meant) throw fail(`\`${key}\` is not a hook. Did you mean \`${meant}\`?`);
    }
  }
  if (!any) throw fail(`it has no hook, tool, state or guard. A middleware has at least one of: ${HOOKS.join(', ')}.`);
  if (middleware.name !== undefined && (typeof middleware.name !== 'string' || middleware.name === '')) throw fail(`\`name\` must be non-empty text, got ${shown(middleware.name)}.`);
  if (middleware.onFail !== undefined && middleware.onFail !== 'closed' && middleware.onFail !== 'open') throw fail(`\`onFail\` must be 'closed' or 'open', got ${shown(middleware.onFail)}.`);
  for (const seam of middleware.seams ?? []) if (!SEAMS.includes(seam)) throw fail(`\`seams\` may hold ${SEAMS.join(', ')}, got ${shown(seam)}.`);
  if (middleware.guard !== undefined) checkGuard(middleware, fail);
}

function checkGuard({ guard }: Middleware, fail: (message: string) => AlliumError): void {
  if (typeof guard !== 'object' || guard === null || !Array.isArray(guard.on) || guard.on.length === 0) throw fail('`guard` needs `on`, a non-empty list of points.');
  for (const point of guard.on) if (!POINTS.includes(point)) throw fail(`\`guard.on\` may hold ${POINTS.join(', ')}, got ${shown(point)}.`);
  if (typeof guard.find !== 'function' && typeof guard.judge !== 'function') throw fail('`guard` needs `find` or `judge`.');
  const { hold = 'full', action = 'redact' } = guard;
  if (hold !== 'full' && !(typeof hold === 'object' && hold !== null && Number.isInteger(hold.chars) && hold.chars >= 1)) throw fail(`\`guard.hold\` must be 'full' or window(n), got ${shown(hold)}.`);
  if (!['redact', 'block', 'stop', 'warn'].includes(action)) throw fail(`\`guard.action\` must be 'redact', 'block', 'stop' or 'warn', got ${shown(action)}.`);
}

/** Own members and those of its class, without what every object has. */
function memberNames(value: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  }
  return names;
}

function bound(middleware: Middleware, hook: string): ((...args: any[]) => any) | undefined {
  const fn = (middleware as Record<string, unknown>)[hook];
  return typeof fn === 'function' ? fn.bind(middleware) : undefined;
}

/** One middleware is one layer: process around before/after around wrap around the catch of `onError`. */
function layersOf({ name, position, middleware }: PlannedMiddleware, seam: Seam): Layer[] {
  const { wrap: wrapName, before: beforeName, after: afterName } = LAYER_HOOKS[seam];
  const common = { name, position, middleware };
  const layers: Layer[] = [];
  const listed = middleware.seams?.includes(seam) ?? true;
  const process = listed ? bound(middleware, 'process') : undefined;
  const wrap = bound(middleware, wrapName);
  const [before, after] = [bound(middleware, beforeName), bound(middleware, afterName)];
  const onError = listed && seam !== 'run' ? bound(middleware, 'onError') : undefined;
  if (process) layers.push({ ...common, kind: 'wrap', hook: 'process', wrap: process });
  if (before || after) layers.push({ ...common, kind: 'pair', hook: before ? beforeName : afterName, before, after });
  if (wrap) layers.push({ ...common, kind: 'wrap', hook: wrapName, wrap });
  if (onError) layers.push({ ...common, kind: 'catch', hook: 'onError', onError });
  return layers;
}

function rulesOf(middleware: readonly PlannedMiddleware[], { hooks = {}, replaces = [] }: ComposeOptions): Pick<Plan, 'rules' | 'replaced'> {
  const rules = {} as Record<RuleHook, PlannedHook[]>;
  const replaced: { hook: RuleHook; names: string[] }[] = [];
  for (const hook of RULE_HOOKS) {
    rules[hook] = middleware.flatMap(({ name, position, middleware: one }) => {
      const fn = bound(one, hook);
      return fn ? [{ name, position, open: one.onFail === 'open', fn }] : [];
    });
    const explicit = hooks[hook];
    if (explicit === undefined) continue;
    if (typeof explicit !== 'function') throw new AlliumError('INVALID_OPTION', `Expected \`${hook}\` to be a function, got ${shown(explicit)}.`);
    const names = rules[hook].map(({ name }) => name);
    const guarding = middleware.find(({ name, middleware: one }) => one.guard && names.includes(name) && !replaces.includes(name));
    if (guarding) {
      throw new AlliumError('GUARD_REPLACED', `\`${hook}\` of the agent would replace the one of "${guarding.name}", which guards. Make it a middleware, or say replaces: ['${guarding.name}'].`);
    }
    if (names.length > 0) replaced.push({ hook, names });
    rules[hook] = [{ name: 'agent', position: -1, open: false, fn: explicit as PlannedHook['fn'] }];
  }
  return { rules, replaced };
}

function guardsOf(middleware: readonly PlannedMiddleware[]): GuardTable {
  const table = Object.fromEntries(POINTS.map((point) => [point, [] as PlannedGuard[]])) as Record<GuardPoint, PlannedGuard[]>;
  for (const { name, position, middleware: one } of middleware) {
    for (const point of one.guard?.on ?? []) table[point].push({ name, position, guard: one.guard!, open: one.onFail === 'open' });
  }
  return table;
}

function toolsOf(middleware: readonly PlannedMiddleware[], own: readonly Tool[]): readonly Tool[] {
  const owners = new Map<string, string>();
  const tools: Tool[] = [];
  const add = (tool: Tool, owner: string): void => {
    if (typeof tool !== 'object' || tool === null || typeof tool.execute !== 'function' || typeof tool.name !== 'string' || !('spec' in tool)) {
      throw new AlliumError('INVALID_TOOL', `${owner} lists ${shown(tool)} as a tool. Make tools with tool({ … }).`);
    }
    const other = owners.get(tool.name);
    if (other) throw new AlliumError('DUPLICATE_TOOL', `Tool "${tool.name}" is brought by ${other} and by ${owner}. Rename one, or leave one out.`);
    owners.set(tool.name, owner);
    tools.push(tool);
  };
  for (const tool of own) add(tool, 'the agent');
  for (const { name, middleware: one } of middleware) for (const tool of one.tools ?? []) add(tool, `middleware "${name}"`);
  return Object.freeze(tools);
}

function cellsOf(middleware: readonly PlannedMiddleware[], own: readonly StateCell<any>[]): Map<StateCell<any>, string> {
  const cells = new Map<StateCell<any>, string>();
  const owners = new Map<string, PlannedMiddleware | undefined>();
  const add = (cell: StateCell<any>, owner: PlannedMiddleware | undefined): void => {
    if (typeof cell?.name !== 'string' || !('scope' in cell)) throw new AlliumError('INVALID_STATE', `${owner ? `Middleware "${owner.name}"` : 'The agent'} lists ${shown(cell)} in \`state\`. Make cells with defineState({ … }).`);
    if (cells.has(cell)) return;
    const base = owner?.middleware.name;
    if (cell.scope === 'session' && owner && base === undefined) {
      throw new AlliumError('DUPLICATE_STATE', `A middleware without a name owns the session cell "${cell.name}". Give it a \`name\`: the stored value is found by it.`);
    }
    const key = `${(cell.scope === 'session' ? base : owner?.name) ?? 'agent'}:${cell.name}`;
    if (owners.has(key)) {
      throw new AlliumError('DUPLICATE_STATE', `Two middleware named "${base ?? 'agent'}" own a cell "${cell.name}". Give each instance a \`name\` of its own, so that their stored values stay apart.`);
    }
    owners.set(key, owner);
    cells.set(cell, key);
  };
  for (const cell of own) add(cell, undefined);
  for (const planned of middleware) for (const cell of planned.middleware.state ?? []) add(cell, planned);
  return cells;
}
