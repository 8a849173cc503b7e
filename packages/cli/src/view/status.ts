/** One line for each thing that happens on the way: tool calls, and actions of middleware. */
import { type AgentEvent, type Change, type Decision, type ToolCall, type ToolMessage, textOf } from 'allium';
import type { Style } from '../terminal/style.js';
import { seconds, short, word } from '../terminal/text.js';

/** A call that somebody rejected or answered isn't made, and an edited one is made with other arguments. */
export function callLine(style: Style, { name, arguments: args }: ToolCall, decision?: Decision): string {
  if (decision?.type === 'reject') return style.dim(`  ⊘ ${short(name)} is not run: rejected`);
  if (decision?.type === 'respond') return style.dim(`  ↩ ${short(name)} is not run: answered in its place`);
  if (decision?.type === 'edit')
    return style.dim(`  → ${short(name)} ${short(JSON.stringify(decision.args) ?? '', 100)} (edited)`);
  return style.dim(`  → ${short(name)} ${short(args, 100)}`);
}

/** The model gets what a tool found; here it is enough that it did. Errors are worth a word. */
export function resultLine(style: Style, name: string, message: ToolMessage, ms: number | undefined): string {
  const took = ms === undefined ? '' : ` (${seconds(ms)})`;
  return message.isError
    ? style.red(`  ✗ ${name}: ${short(textOf(message), 100)}${took}`)
    : style.dim(`  ✓ ${name}${took}`);
}

/** What a middleware reports about itself. Common built-ins are put into words. */
export function customLine(style: Style, event: Extract<AgentEvent, { type: 'custom' }>): string {
  const data = (event.data ?? {}) as Readonly<Record<string, unknown>>;
  if (event.name === 'retry' && typeof data.delayMs === 'number')
    return style.yellow(
      `  ↻ ${word(String(data.tool ?? data.seam))} failed: ${short(String(data.error), 80)}; ${word(event.by ?? 'retry')} tries again in ${seconds(data.delayMs)}`,
    );
  const by = event.by && event.by !== event.name ? `${word(event.by)}: ` : '';
  const rest = event.data === undefined ? '' : ` ${short(JSON.stringify(event.data) ?? '', 80)}`;
  return style.dim(`  · ${by}${word(event.name)}${rest}`);
}

export function changeLine(style: Style, { by, what, turn }: Change): string {
  return style.dim(`  · ${word(by)}: ${short(what, 100)}${turn > 0 ? ` (turn ${turn})` : ''}`);
}
