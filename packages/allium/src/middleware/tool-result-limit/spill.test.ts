import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileSpill, memorySpill } from 'allium/middleware/tool-result-limit';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'spill-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('memorySpill', () => {
  it('forgets what was not used for longest', () => {
    const spill = memorySpill({ maxChars: 10 });
    spill.set('a', 'aaaa');
    spill.set('b', 'bbbb');
    spill.get('a');
    spill.set('c', 'cccc');
    expect(['a', 'b', 'c'].map((key) => spill.get(key))).toEqual(['aaaa', undefined, 'cccc']);
  });

  it('counts a text once that is set again', () => {
    const spill = memorySpill({ maxChars: 10 });
    for (let i = 0; i < 5; i++) spill.set('a', 'aaaaa');
    spill.set('b', 'bbbbb');
    expect(['a', 'b'].map((key) => spill.get(key))).toEqual(['aaaaa', 'bbbbb']);
  });

  it('refuses a text that is longer than all it may hold, and keeps the rest', () => {
    const spill = memorySpill({ maxChars: 3 });
    spill.set('a', 'aaa');
    expect(() => spill.set('b', 'bbbb')).toThrow('The text has 4 characters, more than the 3 of this store.');
    expect(spill.get('a')).toBe('aaa');
    expect(() => memorySpill({ maxChars: 0 })).toThrow('Expected `maxChars` to be an integer ≥ 1, got 0.');
  });
});

describe('fileSpill', () => {
  it('keeps texts for others, whatever the key, in files that only the owner reads', async () => {
    const dir = join(folder, 'deep', 'er');
    const key = '../../etc/passwd\0["a"]';
    await fileSpill(dir).set(key, 'grüß 🧅');
    expect(await fileSpill(dir).get(key)).toBe('grüß 🧅');
    expect(await fileSpill(dir).get('other')).toBeUndefined();
    const files = readdirSync(dir);
    expect(files).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.txt$/)]);
    expect(readFileSync(join(dir, files[0]!), 'utf8')).toBe('grüß 🧅');
    expect(statSync(join(dir, files[0]!)).mode & 0o777).toBe(0o600);
  });

  it('says when its folder cannot be read', async () => {
    await expect(fileSpill('/dev/null/x').get('a')).rejects.toThrow('ENOTDIR');
    expect(() => fileSpill('')).toThrow('Expected `dir` to be the path of a folder, got "".');
  });
});
