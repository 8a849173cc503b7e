/** Checks what middleware say about their place in the list. Nothing is re-sorted. */
import { AlliumError } from './errors.js';
import type { Middleware } from './middleware.js';

interface Placed {
  readonly name: string;
  readonly position: number;
  readonly middleware: Middleware;
}

export function checkOrder(list: readonly Placed[]): void {
  const of = (name: string) => list.filter((one) => one.middleware.name === name || one.name === name);
  for (const one of list) {
    const { outside = [], inside = [], requires = [] } = one.middleware.order ?? {};
    for (const name of requires) {
      if (of(name).length > 0) continue;
      throw new AlliumError('REQUIRED_MIDDLEWARE_MISSING', `"${one.name}" requires "${name}", which is not in the list. Add it, or remove "${one.name}".`);
    }
    for (const name of outside) for (const other of of(name)) if (other.position < one.position) throw misplaced(one, other, 'outside');
    for (const name of inside) for (const other of of(name)) if (other.position > one.position) throw misplaced(one, other, 'inside');
  }
}

function misplaced(one: Placed, other: Placed, side: 'outside' | 'inside'): AlliumError {
  const back = other.middleware.order?.[side] ?? [];
  if (back.includes(one.name) || (one.middleware.name && back.includes(one.middleware.name))) {
    return new AlliumError('ORDER_IMPOSSIBLE', `"${one.name}" must stand ${side} "${other.name}" and "${other.name}" must stand ${side} "${one.name}". No order satisfies both: remove one of the constraints or one of the middleware.`);
  }
  const [first, second] = side === 'outside' ? [one, other] : [other, one];
  return new AlliumError('ORDER_IMPOSSIBLE', `"${one.name}" must stand ${side} "${other.name}", but is at place ${one.position + 1} with "${other.name}" at ${other.position + 1}. Put "${first.name}" before "${second.name}" in the list.`);
}
