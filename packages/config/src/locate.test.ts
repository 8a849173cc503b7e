import fc from 'fast-check';
import { stringify } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { locator } from './locate.js';

const toml = `# a comment with [brackets] and key = value
title = "x" # [not.a.table]
[allium]
model = 'offline'
"quoted key".inner = 1
limits.turns = 3
limits . "costUsd" = 0.5
text = """
[allium.fake]
fake = 1 ""\\" still inside
"""
raw = '''
fake = 2
'''

[allium.middleware]
chain = [
  "cache", # first
  # a line of its own
  { use = "retry", on = "tool",
    attempts = 2, nested = { deep = [1,
      2] } },
  ["a",
   "b"],
]

[[allium.list]]
a = 1
[[allium.list]]
a = 2
[allium.list.sub]
b = 3
[[allium.list.inner]]
c = 4
[[allium.list.inner]]
c = 5
[ allium . "plugins" . rate-limit ]
perMs = 1_000
when = 2026-11-15T10:00:00Z
`;

describe('the line of a key', () => {
  const lineOf = locator(toml, 'toml');

  it.each([
    [['title'], 2],
    [['allium'], 3],
    [['allium', 'model'], 4],
    [['allium', 'quoted key', 'inner'], 5],
    [['allium', 'limits', 'turns'], 6],
    [['allium', 'limits', 'costUsd'], 7],
    [['allium', 'limits'], 6],
    [['allium', 'raw'], 12],
    [['allium', 'middleware', 'chain'], 17],
    [['allium', 'middleware', 'chain', 0], 18],
    [['allium', 'middleware', 'chain', 1], 20],
    [['allium', 'middleware', 'chain', 1, 'on'], 20],
    [['allium', 'middleware', 'chain', 1, 'attempts'], 21],
    [['allium', 'middleware', 'chain', 1, 'nested', 'deep', 1], 22],
    [['allium', 'middleware', 'chain', 2, 1], 24],
    [['allium', 'list', 0, 'a'], 28],
    [['allium', 'list', 1, 'a'], 30],
    [['allium', 'list', 1, 'sub', 'b'], 32],
    [['allium', 'list', 1, 'inner', 0, 'c'], 34],
    [['allium', 'list', 1, 'inner', 1, 'c'], 36],
    [['allium', 'plugins', 'rate-limit', 'perMs'], 38],
    [['allium', 'plugins', 'rate-limit', 'when'], 39],
  ])('%j', (path, line) => {
    expect(lineOf(path)).toBe(line);
  });

  it('is that of the nearest key above if the key is missing', () => {
    expect(lineOf(['allium', 'middleware', 'chain', 1, 'missing'])).toBe(20);
    expect(lineOf(['allium', 'nothing', 'at', 'all'])).toBe(3);
    expect(lineOf(['elsewhere'])).toBeUndefined();
    expect(lineOf([])).toBeUndefined();
  });

  it('does not confuse text with keys', () => {
    expect(lineOf(['allium', 'fake'])).toBe(3);
    expect(lineOf(['fake'])).toBeUndefined();
  });

  it('is found in JSON', () => {
    const of = locator(
      '{\n  "$schema": "x",\n  "allium": {\n    "chain": [\n      "a:b,}",\n      { "use": "b",\n        "n\\"q": 1 }\n    ], "z": true\n  }\n}',
      'json',
    );
    expect(of(['allium', 'chain', 0])).toBe(5);
    expect(of(['allium', 'chain', 1, 'use'])).toBe(6);
    expect(of(['allium', 'chain', 1, 'n"q'])).toBe(7);
    expect(of(['allium', 'z'])).toBe(8);
  });

  it('is found for every key of any document', () => {
    const key = fc.stringMatching(/^[a-z "'.#=\]-]{1,6}$/);
    const scalar = fc.oneof(
      fc.integer({ min: -9, max: 9 }),
      fc.boolean(),
      fc.stringMatching(/^[a-z"'#=[\]{},\n\\]{0,6}$/),
    );
    const table = fc.dictionary(
      key,
      fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(key, scalar, { maxKeys: 3 })),
      { maxKeys: 4 },
    );
    fc.assert(
      fc.property(table, (value) => {
        const text = stringify(value);
        const of = locator(text, 'toml');
        for (const [name, member] of Object.entries(value)) {
          const line = of([name]);
          // An empty table leaves its heading only.
          expect(text.split('\n')[(line ?? 0) - 1], text).toMatch(/=|\[/);
          if (typeof member === 'object' && !Array.isArray(member))
            for (const inner of Object.keys(member)) expect(of([name, inner])).toBeGreaterThan(line!);
        }
      }),
      { numRuns: 300 },
    );
  });
});
