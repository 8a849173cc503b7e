/** Options of a run: the kernel's own, and those that middleware declare with `runOptions`. */
import { checkKeys } from './errors.js';

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
