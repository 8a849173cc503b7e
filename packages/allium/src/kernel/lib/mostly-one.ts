/**
 * A map by id that mostly holds one thing: the first has a place of its own. A `Map` that is filled and emptied again and
 * again is made anew each time, which costs more than what a run writes into it.
 */
export class MostlyOne<V> {
  private id: string | undefined = undefined;
  private one: V | undefined = undefined;
  private others: Map<string, V> | undefined = undefined;

  get(id: string): V | undefined {
    return id === this.id ? this.one : this.others?.get(id);
  }

  has(id: string): boolean {
    return id === this.id || (this.others?.has(id) ?? false);
  }

  set(id: string, value: V): void {
    if (id === this.id || (this.id === undefined && !this.others?.has(id))) {
      this.id = id;
      this.one = value;
    } else {
      this.others ??= new Map();
      this.others.set(id, value);
    }
  }

  delete(id: string): void {
    if (id === this.id) {
      this.id = undefined;
      this.one = undefined;
    } else this.others?.delete(id);
  }

  *entries(): Generator<readonly [string, V]> {
    if (this.id !== undefined) yield [this.id, this.one as V];
    if (this.others) yield* this.others;
  }
}
