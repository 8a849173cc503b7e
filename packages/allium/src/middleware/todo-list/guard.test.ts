import { describe, expect, it } from 'vitest';
import { CLEAN, type GuardState, type Seen, step } from './guard.js';
import type { Todo } from './todos.js';

const open: readonly Todo[] = [
  { content: 'Dig', status: 'in_progress' },
  { content: 'Plant', status: 'pending' },
];
const done: readonly Todo[] = open.map(({ content }) => ({ content, status: 'completed' }));

const text: Seen = { calls: 0, writes: [], todos: open };
const tools: Seen = { calls: 2, writes: [], todos: open };
const writes = (...payloads: unknown[]): Seen => ({
  calls: payloads.length,
  writes: payloads.map((todos) => (typeof todos === 'string' ? todos : JSON.stringify({ todos }))),
  todos: open,
});
const over = (seen: Seen, todos: readonly Todo[]): Seen => ({ ...seen, todos });
const state = (given: Partial<GuardState>): GuardState => ({ ...CLEAN, ...given });
const finished = (one: Todo): Todo => ({ ...one, status: 'completed' });
const quiet = state({ suppressed: true });

interface Transition {
  readonly from: GuardState;
  readonly on: Seen;
  readonly to: GuardState;
  readonly note?: RegExp;
  readonly decision?: 'stop' | 'loop_to_model';
}

const TABLE: Record<string, Transition> = {
  // 1. Blocked: comes before everything else.
  'blocked, text': { from: state({ blocked: 0, corrections: 2 }), on: text, to: quiet, decision: 'stop' },
  'blocked, text, nothing unfinished': {
    from: state({ blocked: 0 }),
    on: over(text, done),
    to: quiet,
    decision: 'stop',
  },
  'blocked, tools, first time': {
    from: state({ blocked: 0, corrections: 2 }),
    on: tools,
    to: state({ blocked: 1, corrections: 2 }),
    note: /Call no tool/,
    decision: 'loop_to_model',
  },
  'blocked, tools, third time': {
    from: state({ blocked: 2, corrections: 2, stale: 4 }),
    on: tools,
    to: state({ blocked: 3, corrections: 2, stale: 4 }),
    note: /Call no tool/,
    decision: 'loop_to_model',
  },
  'blocked, tools, fourth time': { from: state({ blocked: 3 }), on: tools, to: quiet, decision: 'stop' },
  'blocked, text after three repeats': { from: state({ blocked: 3 }), on: text, to: quiet, decision: 'stop' },
  'blocked, a good list': {
    from: state({ blocked: 0 }),
    on: writes(done),
    to: state({ blocked: 1 }),
    note: /Call no tool/,
    decision: 'loop_to_model',
  },
  'blocked, two lists': {
    from: state({ blocked: 1 }),
    on: writes(done, done),
    to: state({ blocked: 2 }),
    note: /Call no tool/,
    decision: 'loop_to_model',
  },

  // Suppressed: nothing is said or counted until the list is written.
  'suppressed, text': { from: quiet, on: text, to: quiet },
  'suppressed, tools': { from: quiet, on: tools, to: quiet },
  'suppressed, nothing unfinished': { from: quiet, on: over(text, done), to: quiet },
  'suppressed, a good list': { from: quiet, on: writes(open), to: CLEAN },
  'suppressed, a bad list': { from: quiet, on: writes('{'), to: CLEAN, note: /not valid JSON/ },
  'suppressed, two lists': { from: quiet, on: writes(open, open), to: CLEAN, note: /2 times in one answer/ },

  // 2. Lists that are not carried out leave the counters alone.
  'two lists': {
    from: state({ stale: 4, corrections: 1 }),
    on: writes(open, done),
    to: state({ stale: 4, corrections: 1 }),
    note: /`write_todos` 2 times in one answer.*the list is as it was/,
  },
  'three lists, one of them bad': { from: CLEAN, on: writes(open, '{', done), to: CLEAN, note: /3 times/ },
  'no JSON': {
    from: state({ stale: 4 }),
    on: writes('{"todos":['),
    to: state({ stale: 4 }),
    note: /not valid JSON/,
  },
  'no arguments': { from: CLEAN, on: writes(''), to: CLEAN, note: /`todos` must be a list/ },
  'JSON null': { from: CLEAN, on: writes('null'), to: CLEAN, note: /`todos` must be a list/ },
  'no list': { from: CLEAN, on: writes('{"todos":"Dig"}'), to: CLEAN, note: /`todos` must be a list/ },
  'an item that is none': { from: CLEAN, on: writes([null]), to: CLEAN, note: /Item 1 has no content/ },
  'empty content': {
    from: CLEAN,
    on: writes([open[0], { content: ' \n', status: 'pending' }]),
    to: CLEAN,
    note: /Item 2 has no content/,
  },
  'an unknown status': {
    from: CLEAN,
    on: writes([{ content: 'Dig', status: 'done' }]),
    to: CLEAN,
    note: /status of item 1 must be pending, in_progress or completed/,
  },
  'none in progress': {
    from: CLEAN,
    on: writes([open[1]]),
    to: CLEAN,
    note: /Exactly one item must be in_progress until all are completed, but none is/,
  },
  'two in progress': { from: CLEAN, on: writes([open[0], open[0]]), to: CLEAN, note: /but 2 are/ },
  'emptying an unfinished list': {
    from: state({ corrections: 2 }),
    on: writes([]),
    to: state({ corrections: 2 }),
    note: /may not be emptied while 2 of its items are unfinished/,
  },
  'emptying a finished list': { from: state({ stale: 3 }), on: over(writes([]), done), to: CLEAN },
  'emptying an empty list': { from: CLEAN, on: over(writes([]), []), to: CLEAN },

  // 3. Stale.
  'the fourth turn without the list': { from: state({ stale: 3 }), on: tools, to: state({ stale: 4 }) },
  'the fifth': { from: state({ stale: 4 }), on: tools, to: state({ stale: 5 }), note: /for 5 turns/ },
  'the sixth': { from: state({ stale: 5 }), on: tools, to: state({ stale: 6 }) },
  'the tenth': { from: state({ stale: 9 }), on: tools, to: state({ stale: 10 }), note: /for 10 turns/ },
  'the fifteenth': { from: state({ stale: 14 }), on: tools, to: state({ stale: 15 }), note: /for 15 turns/ },
  'work after a correction': {
    from: state({ corrections: 2 }),
    on: tools,
    to: state({ corrections: 2, stale: 1 }),
  },
  'tools without a list': { from: CLEAN, on: over(tools, []), to: CLEAN },
  'tools after the list is done': { from: state({ stale: 4 }), on: over(tools, done), to: CLEAN },

  // 4. Finishing.
  'the first answer that comes too early': {
    from: CLEAN,
    on: text,
    to: state({ corrections: 1 }),
    note: /You answered, but[\s\S]*\[>\] Dig\n\[ \] Plant/,
    decision: 'loop_to_model',
  },
  'the second': {
    from: state({ corrections: 1, stale: 7 }),
    on: text,
    to: state({ corrections: 2, stale: 7 }),
    note: /You answered, but/,
    decision: 'loop_to_model',
  },
  'the third': {
    from: state({ corrections: 2 }),
    on: text,
    to: state({ corrections: 2, blocked: 0 }),
    note: /Call no tool[\s\S]*Plant/,
    decision: 'loop_to_model',
  },

  // 5. Clean.
  'an answer without a list': { from: CLEAN, on: over(text, []), to: CLEAN },
  'an answer with everything done': {
    from: state({ corrections: 2, stale: 3 }),
    on: over(text, done),
    to: CLEAN,
  },
  'the same list again': {
    from: state({ corrections: 2, stale: 9 }),
    on: writes(open),
    to: state({ corrections: 2 }),
  },
  'a list with something done': {
    from: state({ corrections: 2, stale: 9 }),
    on: writes([...open.map(finished), ...open]),
    to: CLEAN,
  },
  'a list with the last thing done': {
    from: state({ corrections: 2, stale: 9 }),
    on: writes(open.map(finished)),
    to: CLEAN,
  },
  'a good list beside other tools': {
    from: state({ stale: 4 }),
    on: { ...writes(done), calls: 3 },
    to: CLEAN,
  },
};

describe('a step of the guard', () => {
  it.each(Object.entries(TABLE))('%s', (_, { from, on, to, note, decision }) => {
    const made = step(from, on);
    expect(made.state).toEqual(to);
    expect(made.decision).toBe(decision);
    if (note) expect(made.note).toMatch(note);
    else expect(made.note).toBeUndefined();
  });

  it('shows only what is unfinished', () => {
    const todos: readonly Todo[] = [...done, { content: 'Water\n it', status: 'in_progress' }];
    expect(step(CLEAN, over(text, todos)).note).toMatch(/Unfinished:\n\[>\] Water it$/);
  });

  it('sends a model back a bounded number of times, whatever it does', () => {
    // Every sequence of 12 responses that never writes the list: the forced turns are at most 2 + 1 + 3.
    let [most, stops] = [0, 0];
    for (let seed = 0; seed < 2 ** 12; seed++) {
      let [now, forced, stopped] = [CLEAN, 0, 0];
      for (let turn = 0; turn < 12; turn++) {
        const made = step(now, (seed >> turn) & 1 ? text : tools);
        now = made.state;
        if (made.decision === 'loop_to_model') forced++;
        if (made.decision === 'stop') stopped++;
      }
      most = Math.max(most, forced);
      stops = Math.max(stops, stopped);
    }
    expect([most, stops]).toEqual([6, 1]);
  });
});
