/** Keys derived from content. Not for secrets: they only have to be the same for the same input, everywhere. */
import type { Message } from './messages.js';
import type { ModelRequest, ToolSpec } from './model.js';

/** Canonical JSON: object keys sorted, undefined left out, dates and the like as their own JSON. */
export function canonical(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if ('toJSON' in value && typeof value.toJSON === 'function') return canonical(value.toJSON());
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record)
    .filter((key) => record[key] !== undefined)
    .sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`).join(',')}}`;
}

/** 106 bits in 22 characters: two independently seeded 53-bit mixing hashes, in one pass. */
export function hash(text: string): string {
  let a = 0xdeadbeef ^ 0x9e3779b9;
  let b = 0x41c6ce57 ^ 0x9e3779b9;
  let c = 0xdeadbeef ^ 0x85ebca6b;
  let d = 0x41c6ce57 ^ 0x85ebca6b;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
    c = Math.imul(c ^ code, 2654435761);
    d = Math.imul(d ^ code, 1597334677);
  }
  return finish(a, b) + finish(c, d);
}

function finish(a: number, b: number): string {
  const low = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  const high = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  return (4294967296 * (2097151 & high) + (low >>> 0)).toString(36).padStart(11, '0');
}

/** What an approval is bound to. */
export function callHash(name: string, args: unknown): string {
  return hash(`${name}\n${canonical(args)}`);
}

/** A request and its model: what `next()` goes in with, so a `ModelContext` is one. */
export interface KeyedRequest extends Partial<Omit<ModelRequest, 'tools'>> {
  readonly model: { readonly provider: string; readonly id: string };
  readonly tools?: readonly (ToolSpec | { readonly spec: ToolSpec })[];
}

/**
 * The same key for the same question to the same model: messages without ids and usage, prompt, tools and settings.
 * The base of caches and cassettes.
 */
export function requestKey(request: KeyedRequest, scope = ''): string {
  const { model, messages = [], systemPrompt = '', tools = [], settings = {} } = request;
  const specs = tools.map((tool) => ('spec' in tool ? tool.spec : tool));
  return hash(
    canonical([scope, model.provider, model.id, systemPrompt, messages.map(plain), specs, settings]),
  );
}

/** Call ids are re-minted per message, so they count only as links between a call and its result. */
function plain(message: Message): unknown {
  const { role, content } = message;
  if (role === 'tool') return { role, content, toolName: message.toolName, isError: message.isError };
  return {
    role,
    content: content.map((part) =>
      part.type === 'tool-call' ? { type: part.type, name: part.name, arguments: part.arguments } : part,
    ),
  };
}
