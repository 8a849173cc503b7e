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
