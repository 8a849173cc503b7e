/** A queue whose two ends cost the same at any length; `Array.shift` would move everything. */
export class RingQueue<T> {
  private items: (T | undefined)[] = new Array(16).fill(undefined);
  private head = 0;
  private size = 0;

  get length(): number {
    return this.size;
  }

  push(item: T): void {
    if (this.size === this.items.length) this.grow();
    this.items[(this.head + this.size++) & (this.items.length - 1)] = item;
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.items[this.head];
    this.items[this.head] = undefined;
    this.head = (this.head + 1) & (this.items.length - 1);
    this.size--;
    return item;
  }

  clear(): void {
    this.items = new Array(16).fill(undefined);
    this.head = 0;
    this.size = 0;
  }

  /** The capacity stays a power of two, so that a mask replaces the remainder. */
  private grow(): void {
    const { items, head } = this;
    this.items = [...items.slice(head), ...items.slice(0, head), ...new Array(items.length).fill(undefined)];
    this.head = 0;
  }
}
