/** Options: checks for factories. Each throws `INVALID_OPTION` with the option, what it takes and what it was given. */
import { flatten } from '../kernel/plan/compose.js';
import type { Middleware, MiddlewareList } from '../kernel/protocol/middleware.js';

export {
  invalidOption,
  nearest as closestName,
  shown as describeValue,
} from '../kernel/lib/errors.js';
/** Kinds of values, for the fields of options. */
export * as kinds from '../kernel/lib/kinds.js';
export {
  checkFields,
  checkKeys,
  checkValue,
  type Fields,
  type Kind,
  type OptionsOf,
  type TypeOf,
} from '../kernel/lib/shapes.js';
export { checkMembers } from '../kernel/plan/check-middleware.js';
export {
  checkFunction,
  checkInteger,
  checkMethods,
  checkNamed,
  checkNumber,
  checkOneOf,
  checkOptions,
  checkText,
  type ErrorClass,
  errorTest,
  type NamedOptions,
} from './option-checks.js';

/** The middleware of lists and pipelines inside each other, in order. Throws what an agent would; `option` is what it calls the list. */
export function flattenMiddleware(list: MiddlewareList, option = 'middleware'): Middleware[] {
  return flatten(list, option);
}
