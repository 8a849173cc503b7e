import { createHash, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sealWith } from './seal.js';

describe('a seal', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    // Around the size up to which lines share one buffer.
    fc.integer({ min: 2600, max: 2800 }).map((length) => '€'.repeat(length)),
    fc.integer({ min: 8000, max: 8300 }).map((length) => 'x'.repeat(length)),
  );

  it('is the HMAC-SHA256 that anyone can compute, for keys and lines of any length', () => {
    const key = fc.oneof(
      fc.string({ minLength: 1, maxLength: 200 }),
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.constantFrom('k'.repeat(63), 'k'.repeat(64), 'k'.repeat(65)),
    );
    fc.assert(
      fc.property(key, fc.array(text, { minLength: 1, maxLength: 4 }), (secret, lines) => {
        const seal = sealWith(secret);
        for (const line of lines)
          expect(seal(line)).toBe(createHmac('sha256', secret).update(line).digest('hex'));
      }),
    );
  });

  it('is the plain SHA-256 without a key', () => {
    fc.assert(
      fc.property(text, (line) => {
        expect(sealWith(undefined)(line)).toBe(createHash('sha256').update(line).digest('hex'));
      }),
    );
  });

  it('does not follow a key that is changed later', () => {
    const secret = Uint8Array.of(1, 2, 3);
    const seal = sealWith(secret);
    const before = seal('a line');
    secret.fill(0);
    expect(seal('a line')).toBe(before);
  });
});
