import { expect, it } from 'vitest';
import { didYouMean, failure } from './answers.js';

it('a failure is an error result', () => {
  expect(failure('There is none.')).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: 'There is none.' }],
  });
});

it('the nearest name is suggested, and no other', () => {
  expect(didYouMean('rewiew', ['write', 'review'])).toBe(' Did you mean "review"?');
  expect(didYouMean('zzzzzz', ['write', 'review'])).toBe('');
  expect(didYouMean('x', [])).toBe('');
});
