/** What the lines of an audit log say. Most are written by hand, at half the cost of JSON.stringify. */

import {
  type Message,
  type ModelResponse,
  type RunContext,
  type ToolContext,
  textOf,
  type Usage,
} from '../../index.js';
import { canonicalJson } from '../../kit/index.js';

/** Remembers its last result: names are usually those of the line before. */
export function lately<T, R>(make: (of: T) => R): (of: T) => R {
  let last: { readonly of: T; readonly made: R } | undefined;
  return (of) => {
    if (last === undefined || last.of !== of) last = { of, made: make(of) };
    return last.made;
  };
}

// As one string: they are part of many lines, and every piece of a line costs.
const modelText = lately<string, string>(JSON.stringify);
const toolText = lately<string, string>(JSON.stringify);
const reasonText = lately<string, string>(JSON.stringify);

/** The fields of a line, as they stand in it. */
export function textOfFields(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(fields).slice(1, -1);
}

/** For a model call that was answered. */
export function answered(
  turn: number,
  model: string,
  messages: number,
  response: ModelResponse,
  content: boolean,
): string {
  const { stopReason, usage, model: answeredBy } = response;
  let said = `"turn":${turn},"model":${modelText(model)},"messages":${messages},"outcome":"ok"`;
  if (answeredBy !== undefined) said += `,"answeredBy":${modelText(answeredBy)}`;
  if (stopReason !== undefined) said += `,"stopReason":${reasonText(stopReason)}`;
  if (usage !== undefined) said += `,"usage":${usageText(usage)}`;
  if (content) said += `,"text":${canonicalJson(textOf(response))}`;
  return `${said},"calls":[${callsText(response, content)}]`;
}

function callsText({ content: parts }: ModelResponse, content: boolean): string {
  let calls = '';
  // Indexed, as content is frozen: a loop with `of` over a frozen list costs several times more.
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    if (part.type !== 'tool-call') continue;
    const args = content ? `,"args":${JSON.stringify(part.arguments)}` : '';
    calls += `${calls === '' ? '' : ','}{"name":${toolText(part.name)}${args}}`;
  }
  return calls;
}

function usageText(usage: Usage): string {
  const { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens } = usage;
  // Infinity and the like aren't JSON, and a layer may have left something out: then it is made the slow way.
  if (!Number.isFinite(inputTokens + outputTokens + cacheRead + cacheWrite + totalTokens))
    return JSON.stringify(usage);
  return `{"inputTokens":${inputTokens},"outputTokens":${outputTokens},"cacheRead":${cacheRead},"cacheWrite":${cacheWrite},"totalTokens":${totalTokens}}`;
}

/** For a tool call that has a result, wherever that came from. */
export function finished(ctx: ToolContext, content: boolean): string {
  const { toolCall, blocked, rawArgs } = ctx;
  const { isError } = ctx.result!;
  let said = `"turn":${ctx.turn},"tool":${toolText(toolCall.name)},"call":${canonicalJson(toolCall.id)}`;
  if (content) {
    const args = rawArgs === undefined ? toolCall.arguments : JSON.stringify(rawArgs);
    if (args !== undefined) said += `,"args":${JSON.stringify(args)}`;
  }
  said += `,"blocked":${blocked === true},"isError":${isError === true}`;
  return content ? `${said},"result":${canonicalJson(textOf(ctx.result!))}` : said;
}

/** For a run that has ended. `input`: what people said in it. `outcome`: describes an error. */
export function ended(
  ctx: Pick<RunContext, 'agent' | 'tenant' | 'usage' | 'result' | 'error'>,
  input: readonly Message[],
  content: boolean,
  outcome: (error: unknown) => Readonly<Record<string, unknown>>,
): string {
  const { agent, tenant, usage, result, error } = ctx;
  let said = `"agent":${canonicalJson(agent.name)}`;
  if (tenant !== undefined) said += `,"tenant":${canonicalJson(tenant)}`;
  if (content) said += `,"input":${JSON.stringify(input.map(textOf))}`;
  said += `,"usage":${usageText(usage)}`;
  if (!result) return `${said},${textOfFields(outcome(error))}`;
  const { status, stop, turns, text } = result;
  const { reason, by } = stop;
  return `${said},${textOfFields({ outcome: status, reason, by, turns, text: content ? text : undefined })}`;
}
