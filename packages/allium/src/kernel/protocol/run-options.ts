/** What the callers of a run pass to it. */

/** Options of a run that belong to middleware, by name. */
export type DeclaredOptions = Readonly<Record<string, unknown>>;
