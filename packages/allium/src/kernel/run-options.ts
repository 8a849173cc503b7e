/** Options of a run: the kernel's own, and those that middleware declare with `runOptions`. */
import type { GenerateRequest } from './context.js';
import { checkKeys, invalidOption } from './errors.js';
import { checkOptions } from './options.js';
import type { Tool } from './tool.js';

/** What `run()` and `stream()` take by themselves. */
export const RUN_OPTIONS: readonly string[] = [
  'middleware',
  'signal',
  'limits',
  'tenant',
  'metadata',
  'onRequest',
  'parent',
];

/** What `resume()` takes beside them. */
export const RESUME_OPTIONS: readonly string[] = [...RUN_OPTIONS, 'answers', 'allowPlanChange'];

/** Options of a run that belong to middleware, by name. */
export type DeclaredOptions = Readonly<Record<string, unknown>>;

const NONE: DeclaredOptions = Object.freeze({});

/**
 * The options that are not the kernel's own. Throws for those that no middleware declares; who declares what is
 * asked only when there are any, which in most runs there are not.
 */
export function declaredOptions(
  what: string,
  options: object,
  own: readonly string[],
  declared: () => readonly string[],
): DeclaredOptions {
  if (Object.keys(options).every((name) => own.includes(name))) return NONE;
  checkKeys(what, options, [...own, ...declared()]);
  const given = Object.entries(options).filter(([name, value]) => !own.includes(name) && value !== undefined);
  return Object.freeze(Object.fromEntries(given));
}

/** What a middleware gives to `ctx.generate()`: a misspelt or wrong part would otherwise be ignored or fail further in. */
export function checkGenerate(request: GenerateRequest): void {
  checkOptions('ctx.generate', request, GENERATE_OPTIONS);
  const { messages, systemPrompt, tools, settings } = request;
  if (messages === undefined)
    throw invalidOption('messages', 'text or messages for ctx.generate()', messages);
  if (systemPrompt !== undefined && typeof systemPrompt !== 'string')
    throw invalidOption('systemPrompt', 'text', systemPrompt);
  const isTool = (one: unknown) => typeof (one as Tool | null)?.execute === 'function';
  if (tools !== undefined && !(Array.isArray(tools) && tools.every(isTool)))
    throw invalidOption('tools', 'a list of tools made with tool()', tools);
  if (
    settings !== undefined &&
    (typeof settings !== 'object' || settings === null || Array.isArray(settings))
  )
    throw invalidOption('settings', 'an object', settings);
}

const GENERATE_OPTIONS = ['messages', 'systemPrompt', 'tools', 'settings'];
