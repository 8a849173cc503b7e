/** Decides which tools may be called, with which arguments, and by whom. */
import type { Context, GuardSubject, Middleware, Request, Verdict } from 'allium';
import { checkFields, invalidOption, isRecord, type Kind, kinds, type OptionsOf } from 'allium/kit';
import { guardrailOf } from '../scan/guard.js';
import { linearPattern } from '../scan/patterns.js';
import { allTexts } from '../scan/texts.js';

const texts = kinds.either(kinds.nonEmptyText, kinds.listOf(kinds.nonEmptyText));
const pattern = kinds.kind<RegExp | string>(
  'a regular expression or its source',
  (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
  { schema: { type: 'string' } },
);

const RULE = {
  /** What happens to a call that fits. */
  effect: kinds.required(kinds.oneOf('allow', 'deny', 'ask')),
  /** Names of tools; `*` stands for any letters. @default every tool */
  tools: texts,
  /**
   * Patterns by the path of an argument, such as `path` or `filter.name`; `*` is any text in them. All of them must
   * match. Where there are several texts at a path, one that matches is enough to deny or ask, and all have to match to
   * allow.
   */
  args: kinds.recordOf(pattern) as Kind<Readonly<Record<string, RegExp | string>>>,
  /** Tenants it is for. @default every tenant */
  tenants: texts,
  /** Roles it is for: the caller has one of them. @default everybody */
  roles: texts,
  /** What the model is told. @default which rule it was */
  reason: kinds.nonEmptyText,
  /** For `ask`: the answers that the question takes. @default all four */
  decisions: kinds.listOf(kinds.oneOf('approve', 'edit', 'reject', 'respond'), undefined, 1),
  /** For `ask`: whether an approval may hold for the rest of the session. @default true */
  remember: kinds.flag,
};

export type ToolRule = OptionsOf<typeof RULE>;

export const OPTIONS = {
  /** Names of tools that may be called, as rules after `rules`; `*` stands for any letters. */
  allow: kinds.names,
  /** Names of tools that may not be called, as rules before all others. */
  deny: kinds.names,
  /**
   * Patterns that arguments have to match, by tool and then by path as in a rule. Checked after `deny`: a call with an
   * argument that doesn't match is refused. A missing argument is not.
   */
  args: kinds.recordOf(kinds.recordOf(pattern)) as Kind<
    Readonly<Record<string, Readonly<Record<string, RegExp | string>>>>
  >,
  /** Checked in order: the first that fits decides. */
  rules: kinds.listOf(kinds.shape(RULE)) as Kind<readonly ToolRule[]>,
  /** What happens to a call that fits no rule. @default 'deny' if a rule allows something, otherwise 'allow' */
  otherwise: kinds.oneOf('allow', 'deny', 'ask'),
  /** The roles of the person who runs the agent. @default `role` or `roles` of the run's metadata */
  roles: kinds.func<(ctx: Context) => string | readonly string[] | undefined>(),
  /** `block` refuses the call and tells the model, `stop` ends the run, `warn` only reports, `feedback` asks again. @default 'block' */
  action: kinds.oneOf('block', 'stop', 'warn', 'feedback'),
  /** What its own failure means. @default 'closed' */
  onFail: kinds.oneOf('closed', 'open'),
  /** Its name. @default 'tool-policy' */
  name: kinds.nonEmptyText,
};

export type ToolPolicyOptions = OptionsOf<typeof OPTIONS>;

interface Compiled {
  readonly label: string;
  readonly effect: 'allow' | 'deny' | 'ask';
  readonly reason?: string;
  readonly answers?: Pick<Request, 'decisions' | 'remember'>;
  fits(name: string, args: unknown, ctx: Context): boolean;
}

/**
 * Allows, refuses or asks about calls, by tool, arguments, tenant and role. The reason names the rule.
 *
 * @example
 * toolPolicy({ deny: ['delete_*'], rules: [{ effect: 'ask', tools: 'shell', args: { command: /\bsudo\b/ } }] });
 */
export function toolPolicy(options: ToolPolicyOptions): Middleware {
  checkFields('toolPolicy()', OPTIONS, options);
  const { allow = [], deny = [], args = {}, rules = [], roles = rolesOfRun } = options;
  const list: Compiled[] = [
    ...deny.map((tools) => compiled({ effect: 'deny', tools }, `deny "${tools}"`, roles)),
    ...Object.entries(args).flatMap(([tools, patterns]) => required(tools, patterns)),
    ...rules.map((rule, i) => compiled(rule, `rule ${i + 1}`, roles, `rules[${i}].args`)),
    ...allow.map((tools) => compiled({ effect: 'allow', tools }, `allow "${tools}"`, roles)),
  ];
  for (const [i, { effect, decisions, remember }] of rules.entries())
    if (effect !== 'ask' && (decisions ?? remember) !== undefined)
      throw invalidOption(`rules[${i}].effect`, "'ask' beside `decisions` and `remember`", effect);
  if (list.length === 0)
    throw invalidOption('rules', 'a rule at least, unless `allow`, `deny` or `args` has one', rules);
  const otherwise = options.otherwise ?? (list.some(({ effect }) => effect === 'allow') ? 'deny' : 'allow');
  const mentions = [
    ...allow,
    ...deny,
    ...Object.keys(args),
    ...rules.flatMap(({ tools = [] }) => tools),
  ].filter((name) => !name.includes('*'));
  return guardrailOf(
    options,
    {
      kind: 'tool-policy',
      points: ['tool-args'],
      action: 'block',
      more: { mentions, suspends: otherwise === 'ask' || rules.some(({ effect }) => effect === 'ask') },
    },
    {
      originals: true,
      judge({ toolCall, args }: GuardSubject, { context }): Verdict | undefined {
        const name = toolCall?.name ?? '';
        const rule = list.find((one) => one.fits(name, args, context));
        const effect = rule?.effect ?? otherwise;
        if (effect === 'allow') return undefined;
        const why = rule
          ? (rule.reason ?? `The tool policy says so (${rule.label}).`)
          : 'No rule of the tool policy allows it.';
        if (effect === 'ask')
          return {
            type: 'ask',
            request: { title: `${name}: ${why}`, ...rule?.answers },
            kind: 'tool-policy',
            severity: 'medium',
          };
        return {
          type: 'deny',
          reason: `Calling "${name}" is not allowed. ${why}`,
          kind: 'tool-policy',
          severity: 'high',
        };
      },
    },
  );
}

function compiled(
  { effect, tools, args = {}, tenants, roles, reason, decisions, remember }: ToolRule,
  label: string,
  rolesOf: (ctx: Context) => string | readonly string[] | undefined,
  at = 'args',
): Compiled {
  const names = tools === undefined ? undefined : listed(tools).map(wildcard);
  const patterns = Object.entries(args).map(
    ([path, source]) => [path, linearPattern(`${at}.${path}`, source)] as const,
  );
  return {
    label,
    effect,
    ...(reason !== undefined && { reason }),
    answers: { ...(decisions && { decisions }), ...(remember !== undefined && { remember }) },
    fits(name, given, ctx) {
      if (names && !names.some((fits) => fits(name))) return false;
      if (tenants !== undefined && !(ctx.tenant !== undefined && listed(tenants).includes(ctx.tenant)))
        return false;
      if (roles !== undefined && !rolesGiven(rolesOf(ctx)).some((role) => listed(roles).includes(role)))
        return false;
      return patterns.every(([path, search]) => {
        const texts = textsAt(given, path, effect);
        const matches = (text: string) => isFound(search, text);
        // One bad text is enough to refuse, and one good text is not enough to allow.
        return effect === 'allow' ? texts.length > 0 && texts.every(matches) : texts.some(matches);
      });
    },
  };
}

/** A rule for each argument of a tool that has to match: it fits if one of its texts doesn't. */
function required(tools: string, patterns: Readonly<Record<string, RegExp | string>>): Compiled[] {
  const isNamed = wildcard(tools);
  return Object.entries(patterns).map(([path, source]) => {
    const search = linearPattern(`args.${tools}.${path}`, source);
    const what = path === '*' ? 'One of its arguments' : `Its argument "${path}"`;
    return {
      label: `args of "${tools}"`,
      effect: 'deny',
      reason: `${what} doesn't match what the tool policy allows.`,
      fits: (name, given) =>
        isNamed(name) && textsAt(given, path, 'allow').some((text) => !isFound(search, text)),
    };
  });
}

function isFound(search: ReturnType<typeof linearPattern>, text: string): boolean {
  let found = false;
  search(text, () => {
    found = true;
  });
  return found;
}

/** `delete_*`: stars stand for any letters. Linear, because it looks for the pieces one after the other. */
function wildcard(pattern: string): (name: string) => boolean {
  const pieces = pattern.split('*');
  return (name) => {
    if (pieces.length === 1) return name === pattern;
    const [first, last] = [pieces[0]!, pieces.at(-1)!];
    if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length)
      return false;
    let at = first.length;
    for (const piece of pieces.slice(1, -1)) {
      const found = name.indexOf(piece, at);
      if (found === -1 || found + piece.length > name.length - last.length) return false;
      at = found + piece.length;
    }
    return true;
  };
}

/**
 * The texts of an argument, also of one with dots in its name; those of all arguments, including their names unless a rule
 * allows them, for `*`. Other values are written as JSON.
 */
function textsAt(args: unknown, path: string, effect: ToolRule['effect']): readonly string[] {
  if (path === '*')
    return effect === 'allow' && isRecord(args) ? Object.values(args).flatMap(allTexts) : allTexts(args);
  if (Array.isArray(args) && !/^\d+(?:\.|$)/.test(path))
    return args.flatMap((item) => textsAt(item, path, effect));
  if (!isRecord(args) && !Array.isArray(args)) return [];
  const found: string[] = [];
  for (const [key, value] of Object.entries(args)) {
    if (key === path) found.push(...allTexts(value));
    else if (path.startsWith(`${key}.`)) found.push(...textsAt(value, path.slice(key.length + 1), effect));
  }
  return found;
}

/** What `roles` returned. A promise would be no role, and its failure nobody's. */
function rolesGiven(given: unknown): readonly string[] {
  if (given === undefined || given === null) return [];
  if (typeof given === 'string' || Array.isArray(given)) return listed(given);
  throw invalidOption(
    'roles()',
    'a function that returns text, a list of texts or undefined, at once',
    given,
  );
}

function listed(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value;
}

function rolesOfRun({ runMetadata }: Context): string | readonly string[] | undefined {
  const { role, roles } = (runMetadata ?? {}) as { role?: unknown; roles?: unknown };
  if (Array.isArray(roles)) return roles.filter((one) => typeof one === 'string');
  return typeof role === 'string' ? role : undefined;
}
