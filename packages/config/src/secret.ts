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

const parts = new WeakMap<Secret, readonly string[]>();

/** A secret that was put together: `Bearer ${TOKEN}`. What it was made of is not to be shown on its own either. */
export function secretFrom(value: string, values: readonly string[]): Secret {
  const secret = new Secret(value);
  parts.set(secret, values);
  return secret;
}

/** The value and what it was made of. */
export function valuesOf(secret: Secret): readonly string[] {
  return [secret.reveal(), ...(parts.get(secret) ?? [])];
}
