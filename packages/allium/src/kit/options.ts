/** Options: checks for factories. Each throws `INVALID_OPTION` with the option, what it takes and what it was given. */
export {
  checkKeys,
  invalidOption,
  nearest as closestName,
  shown as describeValue,
} from '../kernel/lib/errors.js';
export { checkMembers as checkMiddleware } from '../kernel/plan/check-middleware.js';
export { flatten as flattenMiddleware } from '../kernel/plan/compose.js';
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
} from '../kernel/protocol/options.js';
