/** Gives twins in a chain their own names, if what they store would collide. */
import type { Middleware } from 'allium';

export interface Link {
  readonly middleware: Middleware;
  /** The name the file gives it. */
  readonly as: string | undefined;
  /** It was made for this chain and may be renamed. */
  readonly fresh: boolean;
}

/**
 * The second middleware of a name that keeps state with the session is called `name#2`, and so on. Others need no
 * name of their own: a plan distinguishes them by itself.
 */
export function withUniqueNames(chain: readonly Link[]): Middleware[] {
  const owners = new Map<string, number>();
  return chain.map(({ middleware, as, fresh }) => {
    const named = as === undefined ? middleware : renamed(middleware, as, fresh);
    const name = named?.name;
    if (name === undefined || !named.state?.some?.((cell) => cell?.scope === 'session')) return named;
    const count = (owners.get(name) ?? 0) + 1;
    owners.set(name, count);
    return count === 1 ? named : renamed(named, `${name}#${count}`, fresh);
  });
}

function renamed(middleware: Middleware, name: string, fresh: boolean): Middleware {
  const own = Object.getOwnPropertyDescriptor(middleware, 'name');
  if (fresh && Object.isExtensible(middleware) && (own === undefined || own.writable)) {
    // In place: an instance of a class may have private fields that a copy would lack.
    Object.defineProperty(middleware, 'name', {
      value: name,
      enumerable: true,
      writable: true,
      configurable: true,
    });
    return middleware;
  }
  return { ...middleware, name };
}
