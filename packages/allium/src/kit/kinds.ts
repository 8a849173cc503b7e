/** The kinds of values that options have: those of the kernel, and those that only options outside it have. */

import type { Clock } from '../kernel/lib/clock.js';
import { isOptions } from '../kernel/lib/errors.js';
import { func, kind, methods } from '../kernel/lib/kinds.js';
import { type Kind, type TypeOf, wrongValue } from '../kernel/lib/shapes.js';

export * from '../kernel/lib/kinds.js';

/** Selects errors: a function, or an error class. `errorTest()` makes a function of either. */
export function errorFilter<T>(): Kind<T> {
  return { ...func<T>(), expected: 'a function or a class of errors' };
}

/** A clock with these methods. It has no schema: no file can name one. */
export function clock(...names: readonly (keyof Clock)[]): Kind<Clock> {
  const { expected, fits } = methods<Clock>(...(names.length > 0 ? names : (['now', 'setTimer'] as const)));
  return { expected, fits };
}

/** An object whose values are all of one kind. Errors name the wrong one, as in `perTool.search`. */
export function recordOf<T>(item: Kind<T>, expected = 'an object'): Kind<Readonly<Record<string, T>>> {
  const inside = (value: object, option: string) => {
    for (const [name, one] of Object.entries(value)) {
      const wrong = one === undefined ? undefined : wrongValue(`${option}.${name}`, item, one);
      if (wrong) return wrong;
    }
    return undefined;
  };
  return kind(expected, isOptions, {
    inside,
    ...(item.schema && { schema: { type: 'object', additionalProperties: item.schema } }),
  });
}

/** Gives a field a default value. */
export function withDefault<K extends Kind>(
  of: K,
  value: NoInfer<TypeOf<K>>,
): K & { readonly default: TypeOf<K> } {
  return { ...of, default: value as TypeOf<K> };
}

/** Keeps the value of a field out of everything that shows options. */
export function secret<K extends Kind>(of: K): K {
  return { ...of, secret: true };
}
