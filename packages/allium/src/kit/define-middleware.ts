/** The two forms that a middleware is written in: an object, or a class. */

import type { Middleware } from '../kernel/protocol/middleware.js';

/** Types an object as middleware. Not generic, so that a misspelt hook is a compile error. */
export function defineMiddleware(middleware: Middleware): Middleware {
  return middleware;
}

export interface BaseMiddleware extends Middleware {}
/** An empty class for people who like classes: implement the hooks you need. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the merge is the point; the class adds no member.
export class BaseMiddleware {}
