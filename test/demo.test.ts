// `npm start`: what a newcomer sees first.

import { expect, it, vi } from 'vitest';

it('the demo prints the plan first, then the run without what the guard removes, and comes to its end', async () => {
  let shown = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    shown += text;
    return true;
  });
  const log = vi.spyOn(console, 'log').mockImplementation((text) => {
    shown += `${text}\n`;
  });
  try {
    await import('../examples/demo.mjs');
  } finally {
    write.mockRestore();
    log.mockRestore();
  }
  const order = [
    'Plan: 3 middleware, 2 tools',
    'you    ',
    'taken back',
    'forecast {',
    'agent  Pack',
    'done after 2 turns',
  ];
  const places = order.map((text) => shown.indexOf(text));
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(shown).toContain('write to [address withheld] and');
  expect(shown).not.toMatch(/\w@\w/);
});
