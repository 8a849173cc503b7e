/**
 * Text that was filled in but isn't secret, such as a default: `"${N:-4}"`. It becomes a number or a switch if one is
 * wanted.
 */
const inspect = Symbol.for('nodejs.util.inspect.custom');

export class Filled {
  constructor(readonly text: string) {
    Object.freeze(this);
  }

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }

  [inspect](): string {
    return JSON.stringify(this.text);
  }
}
