// A middleware of our own: no e-mail address leaves the agent, however its answer is cut into pieces while it streams.

import { defineMiddleware, window } from 'allium';

export default function noEmail() {
  return defineMiddleware({
    name: 'no-email',
    traits: ['redacts'],
    guard: {
      on: ['output'],
      hold: window(64),
      find: (text) =>
        [...text.matchAll(/[\w.+-]{1,30}@[\w-]{1,20}(\.[\w-]{1,10}){1,2}/g)].map(
          ({ index, 0: { length } }) => ({
            start: index,
            end: index + length,
          }),
        ),
      replacement: '[email]',
    },
  });
}
