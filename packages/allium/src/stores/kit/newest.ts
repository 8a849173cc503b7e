/** What a store remembers of its sessions, but not of all of them. */

/** A map that holds the newest so many entries. */
export class Newest<Key, Value> {
  readonly #map = new Map<Key, Value>();
  /**
   * Where the oldest is. A new iterator would pass all places whose entries are gone, thousands of them in a large map. This
   * one passes each once.
   */
  readonly #oldest = this.#map.keys();

  constructor(private readonly limit: number) {}

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  /** Removes the oldest entry if there is one too many now, and returns its value. */
  set(key: Key, value: Value): Value | undefined {
    this.#map.set(key, value);
    if (this.#map.size <= this.limit) return undefined;
    const oldest: Key = this.#oldest.next().value!;
    const gone = this.#map.get(oldest);
    this.#map.delete(oldest);
    return gone;
  }

  delete(key: Key): void {
    this.#map.delete(key);
  }

  keys(): Key[] {
    return [...this.#map.keys()];
  }
}
