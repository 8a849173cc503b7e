/** A guard that returned what it may not: said in full to the caller, and without content to everybody else. */
import { AlliumError, shown } from './errors.js';

/** The contract that a guard broke. Its message may quote what was judged; `told` says the same without any of it. */
export class WrongReturn extends AlliumError {
  readonly told: string;

  constructor(guard: string, hook: 'find' | 'judge', returned: unknown, wanted: string) {
    super('INVALID_HOOK_RESULT', `${hook} of guard "${guard}" returned ${shown(returned)}. ${wanted}`);
    this.told = `its ${hook} returned ${shapeOf(returned)}. ${wanted}`;
  }
}

/** What kind of value it is. Texts are left out, for they may be what the guard should have kept back. */
export function shapeOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value !== 'object') return KINDS[typeof value] ?? `a ${typeof value}`;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof (value as { then?: unknown }).then === 'function') return 'a promise';
  const keys = Object.keys(value);
  const fields = keys.slice(0, 6).map((key) => fieldOf(key, (value as Record<string, unknown>)[key]));
  if (keys.length > 6) fields.push('…');
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

const KINDS: Readonly<Record<string, string>> = { string: 'text' };

function fieldOf(key: string, value: unknown): string {
  const name = WORD.test(key) ? key : '…';
  // The offsets of a span and the word for a verdict are what people get wrong, and no content.
  if ((key === 'start' || key === 'end') && typeof value === 'number') return `${name}: ${value}`;
  if (key === 'type' && typeof value === 'string' && WORD.test(value)) return `${name}: '${value}'`;
  return `${name}: ${typeof value === 'object' && value !== null ? 'an object' : shapeOf(value)}`;
}

const WORD = /^[\w-]{1,20}$/;
