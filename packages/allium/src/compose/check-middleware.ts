/** Finds mistakes in a middleware object that would go unnoticed: misspelt members, wrong declarations. */

import { AlliumError, closestName, shown } from '../kernel/lib/errors.js';
import { foreignName } from '../kernel/lib/foreign-names.js';
import * as kinds from '../kernel/lib/kinds.js';
import { type Fields, type Kind, wrongFieldValue } from '../kernel/lib/shapes.js';
import { type GuardPoint, POINTS } from '../kernel/protocol/guard.js';
import type { Guard, Middleware } from '../kernel/protocol/middleware.js';
import { RULE_HOOKS, SEAMS, type Seam } from '../kernel/protocol/plan.js';
import { isTool } from '../kernel/protocol/tool.js';
import { FOREIGN_HOOKS } from './foreign-hooks.js';
import { RESUME_OPTIONS } from './run-options.js';

/** The points that judge an answer of the model, which can be asked for again. */
const ANSWERS: readonly GuardPoint[] = ['output', 'thinking', 'tool-args', 'final'];
/** The hooks that form layers, by seam. */
export const LAYER_HOOKS = {
  run: { wrap: 'wrapRun', before: 'beforeRun', after: 'afterRun' },
  model: { wrap: 'wrapModel', before: 'beforeModel', after: 'afterModel' },
  tool: { wrap: 'wrapTool', before: 'beforeTool', after: 'afterTool' },
} as const satisfies Record<Seam, Record<'wrap' | 'before' | 'after', keyof Middleware>>;

export const HOOKS: readonly string[] = [
  ...RULE_HOOKS,
  ...SEAMS.flatMap((seam) => Object.values(LAYER_HOOKS[seam])),
  'process',
  'onError',
];

const WINDOW: Kind = kinds.kind('window(n)', (value) => Number.isInteger(value?.chars) && value.chars >= 1);

const GUARD: Kind = kinds.shape({
  on: kinds.required(kinds.listOf(kinds.oneOf(...POINTS), undefined, 1)),
  hold: kinds.either(kinds.oneOf('full'), WINDOW),
  find: kinds.func(),
  judge: kinds.func(),
  action: kinds.oneOf('redact', 'block', 'stop', 'warn', 'feedback'),
  replacement: kinds.text,
  maxFeedback: kinds.integer(1),
  parallel: kinds.flag,
  originals: kinds.flag,
  restore: kinds.shape({ find: kinds.required(kinds.func()), answer: WINDOW }),
} satisfies Record<keyof Guard, Kind>);

/** Every member that is not a hook. */
const DECLARATIONS: Fields = {
  name: kinds.nonEmptyText,
  extraLlmCalls: kinds.func(),
  hazards: kinds.func(),
  onFail: kinds.oneOf('closed', 'open'),
  tools: kinds.list,
  state: kinds.list,
  runOptions: kinds.listOf(
    kinds.kind(
      `a name that is not already an option of a run (${RESUME_OPTIONS.join(', ')})`,
      (name) => typeof name === 'string' && name !== '' && !RESUME_OPTIONS.includes(name),
    ),
  ),
  traits: kinds.names,
  mentions: kinds.names,
  brings: kinds.names,
  seams: kinds.listOf(kinds.oneOf(...SEAMS)),
  suspends: kinds.flag,
  sink: kinds.flag,
  traces: kinds.flag,
  looksBack: kinds.integer(0),
  enoughHistory: kinds.func(),
  order: kinds.shape({ outside: kinds.names, inside: kinds.names, requires: kinds.names }),
  guard: GUARD,
  madeWith: kinds.record,
} satisfies { readonly [Name in keyof Middleware]: Kind };
const isDeclared = (key: string): boolean => Object.hasOwn(DECLARATIONS, key);
/** Declarations that do something by themselves. */
const ACTING = ['tools', 'state', 'guard', 'runOptions'];
/** Checks one middleware: a misspelt hook would never be called. `place` identifies a middleware without a name. */
export function checkMembers(middleware: Middleware, place: string): void {
  const { name } = middleware as { readonly name?: unknown };
  const who = `Middleware ${typeof name === 'string' && name !== '' ? `"${name}"` : place}`;
  const fail = (message: string) => new AlliumError('INVALID_MIDDLEWARE', `${who}: ${message}`);
  let declares = false;
  let acts = false;
  let other: string | undefined;
  const members = memberNames(middleware);
  for (const [key, isAccessor] of members) {
    const known = isDeclared(key) || HOOKS.includes(key);
    // An unknown getter may do anything, so it isn't called.
    if (isAccessor && !known) continue;
    const value = (middleware as Record<string, unknown>)[key];
    if (isDeclared(key)) {
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
  // Empty, or with only a name: meant to do nothing. With other members it was meant to do something.
  if (!acts && members.size > 0 && (!declares || other !== undefined))
    throw fail(
      other === 'execute'
        ? 'it is a tool. Put it into `tools: [ … ]`.'
        : `it has no hook, tool, state or guard${other === undefined ? '' : `, and \`${other}\` is not one`}. A middleware has at least one of: ${HOOKS.join(', ')}.`,
    );
  checkDeclarations(middleware, fail);
}

/** The member that was probably meant. Functions may resemble a hook; other values a declaration or a guard. */
function meantBy(key: string, value: unknown): string | undefined {
  const flat = (name: string) => name.replace(/[-_]/g, '').toLowerCase();
  const here = foreignName(FOREIGN_HOOKS, key);
  const declared = Object.keys(DECLARATIONS).find((name) => flat(name) === flat(key));
  if (typeof value === 'function') return here ?? declared ?? closestName(key, HOOKS);
  if (here !== undefined && isDeclared(here)) return here;
  if (declared) return declared;
  const guards =
    typeof value === 'object' && value !== null && 'on' in value && ('find' in value || 'judge' in value);
  return guards ? closestName(key, ['guard']) : undefined;
}

function checkDeclarations(middleware: Middleware, fail: (message: string) => AlliumError): void {
  const wrong = wrongFieldValue(DECLARATIONS, middleware);
  if (wrong) throw fail(wrong.message);
  const { name, order = {}, guard } = middleware;
  for (const [key, names] of Object.entries(order))
    if (names?.includes(name!))
      throw fail(
        `\`order.${key}\` may not contain the middleware's own name. List the others it must stand inside or outside of.`,
      );
  if (guard && !guard.find && !guard.judge) throw fail('`guard` needs `find` or `judge`.');
  if (guard) checkFeedback(guard, fail);
  if (guard?.parallel && (guard.find || guard.on.some((point) => point !== 'input')))
    throw fail(
      "`guard.parallel` is for a guard that has `judge` and no `find`, on ['input'] alone: it judges the input of a run while the model answers it.",
    );
}

function checkFeedback({ on, action, maxFeedback }: Guard, fail: (message: string) => AlliumError): void {
  const elsewhere = on.filter((point) => !ANSWERS.includes(point));
  if (action === 'feedback' && elsewhere.length > 0)
    throw fail(
      `\`guard.action\` 'feedback' asks the model again, so it is for what the model answered (${ANSWERS.join(', ')}), not for ${elsewhere.join(', ')}. Use 'block' there, in a middleware of its own.`,
    );
  if (maxFeedback !== undefined && action !== 'feedback')
    throw fail("`guard.maxFeedback` goes with action: 'feedback'.");
}

/** Its own members and those of its class; true for getters. */
function memberNames(value: object): Map<string, boolean> {
  const names = new Map<string, boolean>();
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at))
      if (name !== 'constructor' && !names.has(name))
        names.set(name, Object.getOwnPropertyDescriptor(at, name)?.get !== undefined);
  }
  return names;
}

/** What to do about something that was given as a tool, or as the list of tools. */
export function insteadOfTool(given: unknown): string {
  const members = Object(given) as Readonly<Record<string, unknown>>;
  const has = (value: unknown, ...names: readonly string[]) =>
    names.some((name) => typeof value === 'object' && value !== null && name in value);
  if (isTool(given)) return 'Put it into a list: [it].';
  if (has(given, ...HOOKS, ...ACTING)) return 'It is a middleware: put it into `middleware: [ … ]`.';
  if (has(given, 'invoke'))
    return 'Convert tools of LangChain: `tools: fromLangChainTools([ … ])` of "@allium/ai-sdk".';
  if ([given, ...Object.values(members)].some((one) => has(one, 'inputSchema')))
    return 'Tools of the AI SDK come with a middleware: `middleware: [fromAiSdkTools({ … })]` of "@allium/ai-sdk".';
  return 'Make tools with tool({ … }). For those of other libraries there are `middleware: [fromAiSdkTools({ … })]` and `tools: fromLangChainTools([ … ])` of "@allium/ai-sdk".';
}
