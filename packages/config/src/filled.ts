/** Text that was filled in and is no secret, as a default: `"${N:-4}"`. Where a number or a switch is wanted, it becomes one. */
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
