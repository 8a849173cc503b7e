/** A store in memory that forgets what hasn't been used for longest. */

export class Lru<T> {
  // A map keeps the order in which keys were set: the first one is the oldest.
  private readonly entries = new Map<string, T>();
  // Kept, and continued from: a new iterator would pass everything that was dropped since the map last grew.
  private readonly oldest = this.entries.keys();

  constructor(private readonly maxEntries: number) {}

  get(key: string): T | undefined {
    const value = this.entries.get(key);
    if (value === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size > this.maxEntries) this.entries.delete(this.oldest.next().value!);
  }

  delete(key: string): void {
    this.entries.delete(key);
  }
}
