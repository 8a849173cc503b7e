/** Finds mistakes in a middleware object that nobody would notice otherwise: misspelt members, wrong declarations. */
import { AlliumError, isOptions, nearest, shown } from '../lib/errors.js';
import { FOREIGN_HOOKS, foreignName } from '../lib/foreign-names.js';
import type { Guard, GuardAction, GuardPoint } from '../protocol/guard.js';
import { LAYER_HOOKS, type Middleware } from '../protocol/middleware.js';
import { isListOf } from '../protocol/options.js';
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
const GUARD_KEYS: readonly string[] = ['on', 'hold', 'find', 'judge', 'action', 'replacement', 'maxFeedback'];
const ACTIONS: readonly GuardAction[] = ['redact', 'block', 'stop', 'warn', 'feedback'];
/** Where there is an answer of the model to ask for again. */
const ANSWERS: readonly GuardPoint[] = ['output', 'thinking', 'tool-args', 'final'];
const HOOKS: readonly string[] = [
  ...Object.keys(RULES),
  ...SEAMS.flatMap((seam) => Object.values(LAYER_HOOKS[seam])),
  'process',
  'onError',
];
type Declared = readonly [wanted: string, fine: (value: any) => boolean];
const LIST: Declared = ['a list', Array.isArray];
const NAMES: Declared = ['a list of names', (value) => isListOf(value, (one) => typeof one === 'string')];
const FLAG: Declared = ['true or false', (value) => typeof value === 'boolean'];
/** What each declaration has to be. What is in lists and objects is looked at afterwards. */
const DECLARED = {
  name: ['non-empty text', (value) => typeof value === 'string' && value !== ''],
  extraLlmCalls: ['a function', (value) => typeof value === 'function'],
  hazards: ['a function', (value) => typeof value === 'function'],
  onFail: ["'closed' or 'open'", (value) => value === 'closed' || value === 'open'],
  tools: LIST,
  state: LIST,
  runOptions: LIST,
  traits: NAMES,
  mentions: NAMES,
  brings: NAMES,
  seams: LIST,
  suspends: FLAG,
  sink: FLAG,
  order: ['an object', isOptions],
} satisfies { readonly [Name in keyof Middleware]: Declared };
/** Every member that is not a hook. */
const DECLARATIONS = [...Object.keys(DECLARED), 'guard'];
/** Declarations that do something by themselves. */
const ACTING = ['tools', 'state', 'guard', 'runOptions'];
/**
 * Checks one middleware: a member that looks like a hook but is none is a mistake nobody would notice otherwise. `place` says
 * which middleware it is if it has no name.
 */
export function checkMembers(middleware: Middleware, place: string): void {
  const { name } = middleware as { readonly name?: unknown };
  const who = `Middleware ${typeof name === 'string' && name !== '' ? `"${name}"` : place}`;
  const fail = (message: string) => new AlliumError('INVALID_MIDDLEWARE', `${who}: ${message}`);
  let declares = false;
  let acts = false;
  let other: string | undefined;
  const members = memberNames(middleware);
  for (const [key, isAccessor] of members) {
    const known = DECLARATIONS.includes(key) || HOOKS.includes(key);
    // A getter of its own may do anything, and is asked by nobody but itself.
    if (isAccessor && !known) continue;
    const value = (middleware as Record<string, unknown>)[key];
    if (DECLARATIONS.includes(key)) {
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
  // One that is empty or only has a name does nothing, and says so. One with other members was meant to do something.
  if (!acts && members.size > 0 && (!declares || other !== undefined))
    throw fail(
      `it has no hook, tool, state or guard${other === undefined ? '' : `, and \`${other}\` is none`}. A middleware has at least one of: ${HOOKS.join(', ')}.`,
    );
  checkDeclarations(middleware, fail);
}

/** Functions may be near a hook; other values must be a declaration in another spelling, or look like a guard. */
function meantBy(key: string, value: unknown): string | undefined {
  const flat = (name: string) => name.replace(/[-_]/g, '').toLowerCase();
  const here = foreignName(FOREIGN_HOOKS, key);
  if (typeof value === 'function') return here ?? nearest(key, HOOKS);
  if (here !== undefined && DECLARATIONS.includes(here)) return here;
  const declared = DECLARATIONS.find((name) => flat(name) === flat(key));
  if (declared) return declared;
  const guards =
    typeof value === 'object' && value !== null && 'on' in value && ('find' in value || 'judge' in value);
  return guards ? nearest(key, ['guard']) : undefined;
}

function checkDeclarations(middleware: Middleware, fail: (message: string) => AlliumError): void {
  for (const [key, [wanted, fine]] of Object.entries<Declared>(DECLARED)) {
    const value = middleware[key as keyof Middleware];
    if (value !== undefined && !fine(value)) throw fail(`\`${key}\` must be ${wanted}, got ${shown(value)}.`);
  }
  for (const option of middleware.runOptions ?? []) {
    if (typeof option !== 'string' || option === '')
      throw fail(`\`runOptions\` must be a list of names, got ${shown(option)}.`);
    if (RESUME_OPTIONS.includes(option))
      throw fail(`\`runOptions\` may not hold ${shown(option)}, which every run takes already.`);
  }
  for (const seam of middleware.seams ?? [])
    if (!SEAMS.includes(seam)) throw fail(`\`seams\` may hold ${SEAMS.join(', ')}, got ${shown(seam)}.`);
  for (const [key, names] of Object.entries(middleware.order ?? {})) {
    if (!['outside', 'inside', 'requires'].includes(key))
      throw fail(`\`order\` takes outside, inside and requires, got ${shown(key)}.`);
    if (names !== undefined && !isListOf(names, (one) => typeof one === 'string'))
      throw fail(`\`order.${key}\` must be a list of names, got ${shown(names)}.`);
    if (names?.includes(middleware.name!))
      throw fail(`\`order.${key}\` may not hold its own name: it says where it stands among others.`);
  }
  if (middleware.guard !== undefined) checkGuard(middleware, fail);
}

function checkGuard({ guard }: Middleware, fail: (message: string) => AlliumError): void {
  const unknown = Object.keys(guard ?? {}).find((key) => !GUARD_KEYS.includes(key));
  if (unknown) throw fail(`\`guard\` takes ${GUARD_KEYS.join(', ')}, got ${shown(unknown)}.`);
  if (typeof guard !== 'object' || guard === null || !Array.isArray(guard.on) || guard.on.length === 0)
    throw fail(`\`guard\` needs \`on\`, a non-empty list of points, got ${shown(guard?.on ?? guard)}.`);
  for (const point of guard.on)
    if (!POINTS.includes(point))
      throw fail(`\`guard.on\` may hold ${POINTS.join(', ')}, got ${shown(point)}.`);
  for (const how of ['find', 'judge'] as const)
    if (guard[how] !== undefined && typeof guard[how] !== 'function')
      throw fail(`\`guard.${how}\` must be a function, got ${shown(guard[how])}.`);
  if (!guard.find && !guard.judge) throw fail('`guard` needs `find` or `judge`.');
  const { hold = 'full', action = 'redact', replacement = '' } = guard;
  if (hold !== 'full' && !(Number.isInteger(hold?.chars) && hold.chars >= 1))
    throw fail(`\`guard.hold\` must be 'full' or window(n), got ${shown(hold)}.`);
  if (!ACTIONS.includes(action))
    throw fail(`\`guard.action\` must be one of ${ACTIONS.join(', ')}, got ${shown(action)}.`);
  checkFeedback(guard, fail);
  if (typeof replacement !== 'string')
    throw fail(`\`guard.replacement\` must be text, got ${shown(replacement)}.`);
}

function checkFeedback({ on, action, maxFeedback }: Guard, fail: (message: string) => AlliumError): void {
  const elsewhere = on.filter((point) => !ANSWERS.includes(point));
  if (action === 'feedback' && elsewhere.length > 0)
    throw fail(
      `\`guard.action\` 'feedback' asks the model again, so it is for what the model answered (${ANSWERS.join(', ')}), not for ${elsewhere.join(', ')}. Use 'block' there, in a middleware of its own.`,
    );
  if (maxFeedback === undefined) return;
  if (!Number.isInteger(maxFeedback) || maxFeedback < 1)
    throw fail(`\`guard.maxFeedback\` must be an integer ≥ 1, got ${shown(maxFeedback)}.`);
  if (action !== 'feedback') throw fail("`guard.maxFeedback` goes with action: 'feedback'.");
}

/** Own members and those of its class, without what every object has; true for those that are read by a getter. */
function memberNames(value: object): Map<string, boolean> {
  const names = new Map<string, boolean>();
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at))
      if (name !== 'constructor' && !names.has(name))
        names.set(name, Object.getOwnPropertyDescriptor(at, name)?.get !== undefined);
  }
  return names;
}
