/** The one tool every contender runs: two numbers, validated, added. */
import { z } from 'zod';

export const NAME = 'add';
export const DESCRIPTION = 'Adds two numbers.';
export const SCHEMA = z.object({ a: z.number(), b: z.number() });
export const ARGUMENTS = '{"a":1,"b":2}';
export const SYSTEM_PROMPT = 'You add numbers.';

/** Counts executions, so that a contender that skips work is found out. */
export const executed = { count: 0 };

/** Async, as tools are: they read, fetch and write. */
export async function execute({ a, b }) {
  executed.count += 1;
  return a + b;
}
