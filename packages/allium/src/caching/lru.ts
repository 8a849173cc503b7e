/** A store in memory that forgets what hasn't been used for longest. */

export class Lru<T> {
  // A map keeps the order in which keys were set: the first one is the oldest.
  private readonly entries = new Map<string, T>();
  // Kept, and continued from: a new iterator would pass everything that was dropped since the map last grew.
  private oldest = this.entries.keys();
  /** How many times a key was set since that iterator was made. */
  private moves = 0;

  constructor(private readonly maxEntries: number) {}

  get(key: string): T | undefined {
    const value = this.entries.get(key);
    if (value === undefined) return undefined;
    this.move(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.move(key, value);
    if (this.entries.size > this.maxEntries) this.entries.delete(this.oldest.next().value!);
  }

  private move(key: string, value: T): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    // An idle iterator keeps alive every table that the map has had since.
    if (++this.moves <= 2 * this.entries.size + 100) return;
    this.moves = 0;
    this.oldest = this.entries.keys();
  }

  delete(key: string): void {
    this.entries.delete(key);
  }
}
