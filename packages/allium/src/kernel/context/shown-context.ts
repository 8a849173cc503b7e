/** What a context shows when somebody prints it or writes it as JSON: its fields, and not the run behind them. */
import { messageOf } from '../lib/errors.js';

/** In the order they are printed. `history`, `plan` and the like are left out: they are long, or not data. */
const FIELDS = [
  ...['seam', 'agent', 'runId', 'sessionId', 'tenant', 'turn', 'depth', 'attempt'],
  ...['model', 'systemPrompt', 'messages', 'tools', 'settings', 'response'],
  ...['toolCall', 'tool', 'args', 'isError', 'blocked', 'result'],
  ...['message', 'toolResults', 'more', 'error', 'usage', 'metadata'],
] as const;

type Field = (typeof FIELDS)[number];
type Named = { readonly name: string };

/** How fields that are not data are shown. */
const SHORT: { readonly [F in Field]?: (value: never) => unknown } = {
  agent: ({ name }: Named) => name,
  model: ({ provider, id }: { readonly provider: string; readonly id: string }) => `${provider}/${id}`,
  tools: (tools: readonly Named[]) => tools.map(({ name }) => name),
  tool: ({ name }: Named) => name,
  error: messageOf,
};

/** The method that Node's `console.log` asks. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Gives the prototype of contexts its `toJSON()`, which `console.log` uses as well. */
export function showFields(prototype: object): void {
  for (const key of ['toJSON', INSPECT])
    Object.defineProperty(prototype, key, { value: fieldsOf, configurable: true, writable: true });
}

function fieldsOf(this: Readonly<Partial<Record<Field, unknown>>>): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const field of FIELDS) {
    // The result of a model call is its response.
    if (!(field in this) || (field === 'result' && 'response' in this)) continue;
    const value = this[field];
    const isEmpty = field === 'metadata' && Object.keys(value as object).length === 0;
    if (value !== undefined && !isEmpty) shown[field] = SHORT[field] ? SHORT[field](value as never) : value;
  }
  return shown;
}
