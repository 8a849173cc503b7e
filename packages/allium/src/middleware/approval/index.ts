/** Asks a person before a tool runs. */

import {
  AlliumError,
  type Awaitable,
  defineMiddleware,
  isControl,
  type Middleware,
  type Request,
  type RequestHandler,
  type Tool,
  type ToolContext,
  type ToolVerdict,
} from '../../index.js';
import {
  checkFields,
  describeValue,
  type Fields,
  invalidOption,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

/** Which answers a question takes. */
export interface ApprovalAnswers extends Pick<Request, 'decisions' | 'remember'> {}

/** What a policy says about a call: `'allow'`, `'deny'`, `'ask'`, `deny(reason)` or `ask(details, timeoutMs, answers)`. */
export type ApprovalVerdict =
  | 'allow'
  | 'deny'
  | 'ask'
  | { readonly type: 'deny'; readonly reason?: string }
  | ({ readonly type: 'ask'; readonly details?: unknown; readonly timeoutMs?: number } & ApprovalAnswers);

/**
 * A function of the call. `ctx.args` are the validated arguments. They have the tool's type in `policyFor(tool,
 * rule)`, and elsewhere once `ctx.is(tool)` has told which tool it is.
 *
 * Contract: it is awaited, and asked once for each call and its arguments, also across a resume. If a person or
 * another middleware changes the arguments, it is asked about the new ones. If it throws, or returns something that
 * is not a verdict, a person is asked.
 */
export type ApprovalRule<Args = unknown> = (ctx: ToolContext<Args>) => Awaitable<ApprovalVerdict>;

/** One rule for all calls, or a verdict or rule for each tool name. `'*'` covers the tools without a line. */
export type ApprovalPolicy = ApprovalRule | Readonly<Record<string, ApprovalVerdict | ApprovalRule>>;

const POLICY = kinds.kind<ApprovalPolicy>(
  'a function of the call, or an object with a verdict for each tool',
  (value) => typeof value === 'function' || kinds.record.fits(value),
  {
    inside(policy: ApprovalPolicy, option) {
      for (const [name, line] of Object.entries(policy)) {
        const problem = typeof line === 'function' ? undefined : problemOf(line);
        if (!problem) continue;
        const expected =
          "'allow', 'deny', 'ask', deny(reason), ask(details, timeoutMs) or a function of the call";
        const wrong = invalidOption(`${option}.${name}`, expected, line);
        if (problem.code !== 'INVALID_OPTION') return wrong;
        return new AlliumError('INVALID_OPTION', `${wrong.message} ${problem.message}`);
      }
      return undefined;
    },
    schema: { type: 'object', additionalProperties: { enum: ['allow', 'ask', 'deny'] } },
  },
);

export const OPTIONS = {
  /**
   * Who decides about a call: a function of the call, or an object with a verdict or a function for each
   * tool. A person is asked about tools that it does not name. @default every call is asked about
   */
  policy: kinds.withDefault(POLICY, {}),
  /**
   * Answers right away, without suspending the run; returning undefined suspends it after all.
   *
   * Contract: it is awaited until the request times out, the run ends or somebody else answers; its signal tells
   * when. The questions of a batch come one after the other. If it throws, the run fails with that error. It is not
   * called for a question that is already open when a run is resumed: the handler of `resume()` or of the agent is.
   */
  onRequest: kinds.func<RequestHandler>(),
  ...named('approval'),
} satisfies Fields;

export interface ApprovalOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** The call does not run; the model reads the reason. */
export function deny(reason?: string): ApprovalVerdict {
  return { type: 'deny', ...(reason !== undefined && { reason }) };
}

/**
 * A person decides. `details` (JSON) is what they see; after `timeoutMs` the call counts as rejected. `answers` limits what
 * they can answer: `{ decisions: ['approve', 'reject'], remember: false }`.
 */
export function ask(details?: unknown, timeoutMs?: number, answers: ApprovalAnswers = {}): ApprovalVerdict {
  return {
    type: 'ask',
    ...(details !== undefined && { details }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...answers,
  };
}

function answersOf({ decisions, remember }: ApprovalAnswers): ApprovalAnswers {
  return { ...(decisions !== undefined && { decisions }), ...(remember !== undefined && { remember }) };
}

/** Does a function decide about some calls? */
function hasRules(policy: ApprovalPolicy): boolean {
  return typeof policy === 'function' || Object.values(policy).some((rule) => typeof rule === 'function');
}

/**
 * Allows, refuses, or asks a person about each tool call before it runs. A run with open questions is suspended, and
 * continues with `session.resume()`, here or in another process.
 *
 * @example
 * approval({ policy: policyFor(pay, (ctx) => (ctx.args.amount > 100 ? ask({ limit: 100 }) : 'allow')) })
 */
export function approval(options: ApprovalOptions = {}): Middleware {
  const { policy, onRequest, name: own, madeWith } = readOptions('approval', OPTIONS, options);
  return defineMiddleware({
    name: own,
    madeWith,
    // A function of yours may look at anything.
    looksBack: hasRules(policy) ? undefined : 0,
    suspends: true,
    traits: ['protects'],
    mentions: Object.keys(policy).filter((name) => name !== '*'),
    async beforeToolCall(ctx): Promise<ToolVerdict | undefined> {
      const { name } = ctx.tool!;
      const verdict = await judged(policy, ctx, name);
      if (verdict.type === 'allow') return undefined;
      if (verdict.type === 'deny')
        return { block: true, reason: verdict.reason ?? `"${name}" is not allowed.` };
      const { details, timeoutMs } = verdict;
      return {
        ask: {
          title: `Run "${name}"?`,
          ...(details !== undefined && { details }),
          ...(timeoutMs !== undefined && { timeoutMs }),
          ...answersOf(verdict),
          ...(onRequest && { onRequest }),
        },
      };
    },
  });
}

/**
 * A line of a policy for one tool, with the types of its arguments. If the model calls a different tool of that name,
 * with another schema, a person is asked.
 *
 * @example
 * approval({ policy: { search: 'allow', ...policyFor(pay, (ctx) => (ctx.args.amount > 100 ? ask() : 'allow')) } })
 */
export function policyFor<Args>(
  // biome-ignore lint/suspicious/noExplicitAny: only the output type of the schema matters here.
  tool: Tool<any, Args>,
  rule: ApprovalVerdict | ApprovalRule<Args>,
): Readonly<Record<string, ApprovalVerdict | ApprovalRule>> {
  if (typeof tool?.name !== 'string' || tool.input === undefined) throw invalidOption('tool', 'a tool', tool);
  if (typeof rule !== 'function') return { [tool.name]: rule };
  return {
    [tool.name]: (ctx) => (ctx.tool?.input === tool.input ? rule(ctx as ToolContext<Args>) : 'ask'),
  };
}

/** What the policy says. If it fails, or returns something that isn't a verdict, a person is asked. */
async function judged(policy: ApprovalPolicy, ctx: ToolContext, name: string): Promise<VerdictObject> {
  try {
    const verdict = asObject(await judge(policy, ctx));
    if (verdict.type !== 'ask' || verdict.details === undefined) return verdict;
    return { ...verdict, details: plain(verdict.details, name) };
  } catch (error) {
    if (isControl(error)) throw error;
    const problem = `The approval policy failed: ${messageOf(error)}`;
    ctx.emit('policy_failed', { tool: name, problem });
    return { type: 'ask', details: { problem } };
  }
}

function judge(policy: ApprovalPolicy, ctx: ToolContext): Awaitable<ApprovalVerdict> {
  if (typeof policy === 'function') return policy(ctx);
  // The tool that runs counts, not the name the model called it by.
  const { name } = ctx.tool!;
  const own = Object.hasOwn(policy, name) ? policy[name]! : Object.hasOwn(policy, '*') ? policy['*']! : 'ask';
  return typeof own === 'function' ? own(ctx) : own;
}

/** A misspelt field would be a limit that doesn't hold. */
const ASK = {
  type: kinds.oneOf('ask'),
  details: kinds.anything,
  timeoutMs: kinds.number(0),
  decisions: kinds.listOf(kinds.oneOf('approve', 'edit', 'reject', 'respond'), undefined, 1),
  remember: kinds.flag,
} satisfies Fields;

type VerdictObject = Exclude<ApprovalVerdict, string> | { readonly type: 'allow' };

/** Throws for anything that isn't a verdict. */
function asObject(verdict: unknown): VerdictObject {
  const made = (typeof verdict === 'string' ? { type: verdict } : verdict) as
    | Partial<VerdictObject>
    | null
    | undefined;
  // With another field beside it, such as a condition that nobody reads, it may not mean to allow.
  if (made?.type === 'allow' && Object.keys(made).join() === 'type') return { type: 'allow' };
  if (made?.type === 'deny' && (made.reason === undefined || typeof made.reason === 'string'))
    return { ...made, type: 'deny' };
  if (made?.type === 'ask') {
    checkFields('ask()', ASK, made, { alloweddecisions: 'decisions' });
    return { ...made, type: 'ask' };
  }
  throw new AlliumError(
    'INVALID_HOOK_RESULT',
    `Expected the policy to answer 'allow', deny(reason) or ask(details, timeoutMs), got ${describeValue(verdict)}.`,
  );
}

function problemOf(verdict: unknown): AlliumError | undefined {
  try {
    asObject(verdict);
    return undefined;
  } catch (error) {
    return error as AlliumError;
  }
}

/** Details are journaled and shown to a person who may be anywhere, so they have to be JSON. */
function plain(details: unknown, name: string): unknown {
  let json: string | undefined;
  try {
    json = JSON.stringify(details);
  } catch {
    // A cycle or a bigint: reported below, like everything else that isn't JSON.
  }
  if (json === undefined)
    throw new AlliumError(
      'INVALID_HOOK_RESULT',
      `Expected the details of the question about "${name}" to be JSON, got ${describeValue(details)}.`,
    );
  return JSON.parse(json);
}
