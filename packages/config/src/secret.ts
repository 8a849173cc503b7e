/** A value from the environment. It prints as `***` wherever it is printed; `reveal()` is the only way to it. */
const inspect = Symbol.for('nodejs.util.inspect.custom');

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  /** The value. Called when it is handed to what needs it, and nowhere else. */
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

/** What is shorter is only taken out of texts where it stands alone. */
export const LONG = 6;

const parts = new WeakMap<Secret, readonly string[]>();

/** A secret that was put together: `Bearer ${TOKEN}`. What it was made of is not to be shown on its own either. */
export function secretFrom(value: string, values: readonly string[]): Secret {
  const secret = new Secret(value);
  parts.set(secret, values);
  return secret;
}

/**
 * What of it may not be shown. The rest of a text around long values stands in the file, and would only take words with
 * it: of `k ${TOKEN}` the `k` in "tok …". Around short values it is what they are known by.
 */
export function valuesOf(secret: Secret): readonly string[] {
  const values = parts.get(secret) ?? [];
  const enough = values.length > 0 && values.every((value) => value.length >= LONG);
  return enough ? values : [secret.reveal(), ...values];
}
