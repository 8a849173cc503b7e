/** What a schema made of the arguments of a call, as JSON: for people to read, and for their answers to be bound to. */

import type { ToolContext } from '../context/context.js';
import { judgeArguments } from '../guards/call-verdicts.js';
import { callHash, canonical, hash } from '../lib/hash.js';

/** Of the tool and of its arguments as they are now: the raw ones, and what the schema made of them. */
export function hashOf({ tool, toolCall, _input }: ToolContext): string {
  const name = tool?.name ?? toolCall.name;
  const { raw, args, assigned } = _input;
  const effective = assigned ? raw : JSON.parse(effectiveText(args));
  // Most schemas change nothing, and journals of earlier releases know no other hash.
  const [given, made] = [canonical(raw), canonical(effective)];
  return made === given ? callHash(name, raw) : hash(`${name}\n${given}\n${made}`);
}

/** What the tool would be called with, as far as guards of arguments let people see it. */
export async function shownArguments(ctx: ToolContext): Promise<string> {
  const { raw, args } = ctx._input;
  const text = effectiveText(args);
  const same = canonical(JSON.parse(text)) === canonical(raw);
  if (same || ctx._run.plan.guards['tool-args'].length === 0) return text;
  const { arguments: kept, deny } = await judgeArguments({ ...ctx.toolCall, arguments: text }, ctx);
  return deny ? JSON.stringify(`Withheld by guard "${deny.by}".`) : kept;
}

/** JSON for what is none, too: dates, big numbers, maps and sets come out of schemas. */
function effectiveText(args: unknown): string {
  try {
    return JSON.stringify(args, readable) ?? 'null';
  } catch {
    // A cycle: the raw arguments say what there is to say.
    return '"[not JSON]"';
  }
}

function readable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value instanceof Map) return { map: [...value] };
  if (value instanceof Set) return { set: [...value] };
  if (value instanceof RegExp || typeof value === 'symbol') return String(value);
  return typeof value === 'function' ? `[function ${value.name}]` : value;
}
