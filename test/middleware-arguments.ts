// What to call a middleware factory with when it cannot be called with nothing: kebab name → arguments.
// The layout test makes one of each; most need no entry here, for options have defaults.

export const middlewareArguments: Readonly<Record<string, () => readonly unknown[]>> = {};
