/** Up to here walking a list costs less than a Set, which is made anew each time it has to grow. */
const FEW = 16;

/** A set of ids: most sessions have few. */
export class IdSet {
  private few: string[] = [];
  private many: Set<string> | undefined = undefined;

  has(id: string): boolean {
    if (this.many !== undefined) return this.many.has(id);
    const { few } = this;
    for (let i = 0; i < few.length; i++) if (few[i] === id) return true;
    return false;
  }

  add(id: string): void {
    if (this.many !== undefined) {
      this.many.add(id);
      return;
    }
    this.few.push(id);
    if (this.few.length <= FEW) return;
    this.many = new Set(this.few);
    this.few = [];
  }
}
