import { describe, expect, it } from 'vitest';
import { strayRejections } from './stray-rejections.js';

describe('strayRejections', () => {
  it('returns the unhandled rejections and puts the other listeners back', async () => {
    const before = process.listeners('unhandledRejection');
    const caught = await strayRejections(async () => {
      void Promise.reject('stray');
      Promise.reject('handled').catch(() => {});
    });
    expect(caught).toEqual(['stray']);
    expect(process.listeners('unhandledRejection')).toEqual(before);
  });

  it('puts the other listeners back if the work fails, and if two overlap', async () => {
    const before = process.listeners('unhandledRejection');
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = strayRejections(() => held);
    await expect(strayRejections(() => Promise.reject(new Error('work')))).rejects.toThrow('work');
    expect(process.listeners('unhandledRejection')).toHaveLength(1);
    release();
    expect(await first).toEqual([]);
    expect(process.listeners('unhandledRejection')).toEqual(before);
  });
});
