/** Values that must not be printed. */
const inspect = Symbol.for('nodejs.util.inspect.custom');

/** A value from the environment. It prints as `***` everywhere; only `reveal()` returns it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  /** The value. Only call it to pass the value to what needs it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '***';
  }

  toJSON(): string {
    return '***';
  }

  [Symbol.toPrimitive](): string {
    return '***';
  }

  [inspect](): string {
    return '***';
  }
}

/** Shorter values are only removed from texts where they stand alone. */
export const LONG = 6;

const parts = new WeakMap<Secret, readonly string[]>();

/** A secret that was put together: `Bearer ${TOKEN}`. Its parts must not be shown on their own either. */
export function secretFrom(value: string, values: readonly string[]): Secret {
  const secret = new Secret(value);
  parts.set(secret, values);
  return secret;
}

/**
 * Which parts of it must not be shown. The text around long values is in the file anyway, and removing it would
 * remove other words, too: for `k ${TOKEN}`, the `k` in "tok …". Short values are only recognised together with it.
 */
export function valuesOf(secret: Secret): readonly string[] {
  const values = parts.get(secret) ?? [];
  const enough = values.length > 0 && values.every((value) => value.length >= LONG);
  return enough ? values : [secret.reveal(), ...values];
}
