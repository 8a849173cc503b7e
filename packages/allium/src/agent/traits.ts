/** The traits that `explain()` understands. */

/** The traits `explain()` knows. Others are allowed and ignored. */
export const TRAITS = {
  caches: 'answers from a store instead of calling inward',
  retries: 'calls inward again after a failure',
  varies: 'makes the request differ from call to call',
  transforms: 'changes the text of responses',
  redacts: 'removes text',
  budgets: 'counts or reserves money or tokens',
  'times-out': 'cancels what takes too long',
  pauses: "doesn't count the time that people take",
  switches: 'asks another model after a failure',
  trips: 'counts failures and then refuses calls',
  settles: 'turns an error into a result',
  keeps: 'keeps the result of a call for when it is repeated',
  exports: 'writes content elsewhere',
  protects:
    'refuses actions or asks about them first: a hook given to the agent replaces its hooks only if told to',
  replays:
    'answers from recordings and writes nothing; a sink, but only because it looks recordings up by the guarded text',
} as const;
