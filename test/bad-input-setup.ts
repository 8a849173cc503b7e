/** What the tests of bad-input begin with. */
import { tool } from 'allium';
import { expect } from 'vitest';
import { z } from 'zod';

export const echo = tool({
  name: 'echo',
  description: '',
  input: z.object({ text: z.string().default('hi') }),
  execute: ({ text: said }) => said,
});
export const coded = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });
