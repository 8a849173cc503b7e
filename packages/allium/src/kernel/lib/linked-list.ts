/** A list whose items hold their own links: adding and removing one costs the same wherever it stands, and no memory. */

export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
}

/** An item is in one list at most. */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined = undefined;
  private last: T | undefined = undefined;

  add(item: T): void {
    const { last } = this;
    item.before = last;
    this.last = item;
    if (last === undefined) this.first = item;
    else last.after = item;
  }

  /** The item must be in this list. */
  remove(item: T): void {
    const { before, after } = item;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
    item.before = item.after = undefined;
  }
}
