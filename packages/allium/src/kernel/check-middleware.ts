/** Finds mistakes in a middleware object that nobody would notice otherwise: misspelt members, wrong declarations. */
import { AlliumError, nearest, shown } from './errors.js';
import { DECLARATIONS, type GuardPoint, LAYER_HOOKS, type Middleware } from './middleware.js';
import { RULES } from './rules.js';
import { RESUME_OPTIONS } from './run-options.js';

export const SEAMS = ['run', 'model', 'tool'] as const;
export const POINTS: readonly GuardPoint[] = [
  'input',
  'request',
  'output',
  'thinking',
  'tool-args',
  'tool-result',
  'final',
];
const GUARD_KEYS: readonly string[] = ['on', 'hold', 'find', 'judge', 'action', 'replacement'];
const HOOKS: readonly string[] = [
  ...Object.keys(RULES),
  ...SEAMS.flatMap((seam) => Object.values(LAYER_HOOKS[seam])),
  'process',
  'onError',
];
/** Declarations that do something by themselves. */
const ACTING = ['tools', 'state', 'guard', 'runOptions'];
/** What other systems call these hooks. */
const ELSEWHERE: Record<string, string> = {
  onrunstart: 'beforeRun',
  callnext: 'process',
  onmodelstart: 'beforeModel',
  ontoolstart: 'beforeTool',
  wrapmodelcall: 'wrapModel',
  wraptoolcall: 'wrapTool',
  beforemodelcall: 'beforeModel',
  aftermodelcall: 'afterModel',
  beforeagent: 'beforeRun',
  afteragent: 'afterRun',
};

/**
 * A member that is not a hook but looks like one is a mistake nobody would notice otherwise. `place` says which
 * middleware it is when it has no name.
 */
export function checkMembers(middleware: Middleware, place: string): void {
  const { name } = middleware as { readonly name?: unknown };
  const who = `Middleware ${typeof name === 'string' && name !== '' ? `"${name}"` : place}`;
  const fail = (message: string) => new AlliumError('INVALID_MIDDLEWARE', `${who}: ${message}`);
  let declares = false;
  let acts = false;
  let other: string | undefined;
  for (const key of memberNames(middleware)) {
    const value = (middleware as Record<string, unknown>)[key];
    if ((DECLARATIONS as readonly string[]).includes(key)) {
      declares = true;
      if (ACTING.includes(key) && value !== undefined) acts = true;
    } else if (HOOKS.includes(key)) {
      if (value === undefined) continue;
      if (typeof value !== 'function') throw fail(`\`${key}\` must be a function, got ${shown(value)}.`);
      acts = true;
    } else {
      const meant = meantBy(key, value);
      if (meant) throw fail(`\`${key}\` is not a hook. Did you mean \`${meant}\`?`);
      if (typeof value === 'function') other ??= key;
    }
  }
  // One that only has a name does nothing and says so. One with methods of which none is a hook was meant to do something.
  if (!acts && (!declares || other !== undefined))
    throw fail(
      `it has no hook, tool, state or guard${other === undefined ? '' : `, and \`${other}\` is none`}. A middleware has at least one of: ${HOOKS.join(', ')}.`,
    );
  checkDeclarations(middleware, fail);
}

/** Functions may be near a hook; other values must be a declaration in another spelling, or look like a guard. */
function meantBy(key: string, value: unknown): string | undefined {
  const flat = (name: string) => name.replace(/[-_]/g, '').toLowerCase();
  if (typeof value === 'function') return ELSEWHERE[flat(key)] ?? nearest(key, HOOKS);
  const declared = DECLARATIONS.find((name) => flat(name) === flat(key));
  if (declared) return declared;
  const guards =
    typeof value === 'object' && value !== null && 'on' in value && ('find' in value || 'judge' in value);
  return guards ? nearest(key, ['guard']) : undefined;
}

function checkDeclarations(middleware: Middleware, fail: (message: string) => AlliumError): void {
  const { name, extraLlmCalls, onFail, order, guard } = middleware;
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw fail(`\`name\` must be non-empty text, got ${shown(name)}.`);
  if (extraLlmCalls !== undefined && typeof extraLlmCalls !== 'function')
    throw fail(`\`extraLlmCalls\` must be a function, got ${shown(extraLlmCalls)}.`);
  if (onFail !== undefined && onFail !== 'closed' && onFail !== 'open')
    throw fail(`\`onFail\` must be 'closed' or 'open', got ${shown(onFail)}.`);
  for (const key of ['tools', 'state', 'runOptions', 'traits', 'seams'] as const) {
    if (middleware[key] !== undefined && !Array.isArray(middleware[key]))
      throw fail(`\`${key}\` must be a list, got ${shown(middleware[key])}.`);
  }
  for (const key of ['suspends', 'sink'] as const) {
    if (middleware[key] !== undefined && typeof middleware[key] !== 'boolean')
      throw fail(`\`${key}\` must be true or false, got ${shown(middleware[key])}.`);
  }
  for (const option of middleware.runOptions ?? []) {
    if (typeof option !== 'string' || option === '')
      throw fail(`\`runOptions\` must be a list of names, got ${shown(option)}.`);
    if (RESUME_OPTIONS.includes(option))
      throw fail(`\`runOptions\` may not hold ${shown(option)}, which every run takes already.`);
  }
  for (const seam of middleware.seams ?? [])
    if (!SEAMS.includes(seam)) throw fail(`\`seams\` may hold ${SEAMS.join(', ')}, got ${shown(seam)}.`);
  if (order !== undefined) {
    if (typeof order !== 'object' || order === null)
      throw fail(`\`order\` must be an object, got ${shown(order)}.`);
    for (const [key, names] of Object.entries(order)) {
      if (!['outside', 'inside', 'requires'].includes(key))
        throw fail(`\`order\` takes outside, inside and requires, got ${shown(key)}.`);
      if (names !== undefined && !(Array.isArray(names) && names.every((one) => typeof one === 'string')))
        throw fail(`\`order.${key}\` must be a list of names, got ${shown(names)}.`);
      if (names?.includes(name!))
        throw fail(`\`order.${key}\` may not hold its own name: it says where it stands among others.`);
    }
  }
  if (guard !== undefined) checkGuard(middleware, fail);
}

function checkGuard({ guard }: Middleware, fail: (message: string) => AlliumError): void {
  const unknown = Object.keys(guard ?? {}).find((key) => !GUARD_KEYS.includes(key));
  if (unknown) throw fail(`\`guard\` takes ${GUARD_KEYS.join(', ')}, got ${shown(unknown)}.`);
  if (typeof guard !== 'object' || guard === null || !Array.isArray(guard.on) || guard.on.length === 0)
    throw fail(`\`guard\` needs \`on\`, a non-empty list of points, got ${shown(guard?.on ?? guard)}.`);
  for (const point of guard.on)
    if (!POINTS.includes(point))
      throw fail(`\`guard.on\` may hold ${POINTS.join(', ')}, got ${shown(point)}.`);
  if (typeof guard.find !== 'function' && typeof guard.judge !== 'function')
    throw fail('`guard` needs `find` or `judge`.');
  const { hold = 'full', action = 'redact', replacement = '' } = guard;
  if (
    hold !== 'full' &&
    !(typeof hold === 'object' && hold !== null && Number.isInteger(hold.chars) && hold.chars >= 1)
  )
    throw fail(`\`guard.hold\` must be 'full' or window(n), got ${shown(hold)}.`);
  if (!['redact', 'block', 'stop', 'warn'].includes(action))
    throw fail(`\`guard.action\` must be 'redact', 'block', 'stop' or 'warn', got ${shown(action)}.`);
  if (typeof replacement !== 'string')
    throw fail(`\`guard.replacement\` must be text, got ${shown(replacement)}.`);
}

/** Own members and those of its class, without what every object has. */
function memberNames(value: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  }
  return names;
}
