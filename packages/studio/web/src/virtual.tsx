/** Lists of any length: only what can be seen is in the page. */
import type { ComponentChildren, HTMLAttributes } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

const OVERSCAN = 8;

/** Rows of one height. */
export function Rows<T>({
  items,
  rowHeight,
  render,
  onEnd,
  selected = -1,
  footer,
  ...rest
}: {
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly render: (item: T, index: number) => ComponentChildren;
  /** Called when the end comes near. */
  readonly onEnd?: () => void;
  /** Kept in sight. */
  readonly selected?: number;
  readonly footer?: ComponentChildren;
} & Omit<HTMLAttributes<HTMLDivElement>, 'selected'>) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const element = box.current!;
    const look = () => setHeight(element.clientHeight);
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current!;
    if (selected < 0) return;
    const from = selected * rowHeight;
    if (from < element.scrollTop) element.scrollTop = from;
    else if (from + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = from + rowHeight - element.clientHeight;
  }, [selected, rowHeight]);
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  useEffect(() => {
    if (onEnd && last >= items.length - 20) onEnd();
  });
  return (
    <div {...rest} ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="spacer" style={{ height: `${items.length * rowHeight}px` }}>
        <div class="window" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {items.slice(first, last).map((item, i) => render(item, first + i))}
        </div>
      </div>
      {footer}
    </div>
  );
}

/** Blocks whose heights are known once they have been shown. */
export function Flow<T>({
  items,
  keyOf,
  guess,
  render,
  reveal,
  ...rest
}: {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** The height of a block that was never shown. */
  readonly guess: number;
  readonly render: (item: T) => ComponentChildren;
  /** The key of what should be in sight. */
  readonly reveal?: string | undefined;
} & HTMLAttributes<HTMLDivElement>) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [, measured] = useState(0);
  const offsets = [0];
  for (const item of items) offsets.push(offsets.at(-1)! + (heights.current.get(keyOf(item)) ?? guess));
  const first = Math.max(0, indexAt(offsets, top) - 3);
  const last = Math.min(items.length, indexAt(offsets, top + height) + 8);

  useLayoutEffect(() => {
    const element = box.current!;
    const look = () => {
      setHeight(element.clientHeight);
    };
    look();
    const observer = new ResizeObserver(() => {
      look();
      measured((n) => n + 1);
    });
    observer.observe(element);
    observer.observe(inner.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    let changed = false;
    let above = 0;
    for (const child of inner.current!.children) {
      const { key } = (child as HTMLElement).dataset;
      if (key === undefined) continue;
      const real = (child as HTMLElement).offsetHeight;
      const known = heights.current.get(key);
      if (known === real) continue;
      const index = Number((child as HTMLElement).dataset.index);
      // Blocks above the visible part must not move what is being read.
      if (offsets[index + 1]! <= top) above += real - (known ?? guess);
      heights.current.set(key, real);
      changed = true;
    }
    if (above !== 0) box.current!.scrollTop += above;
    if (changed) measured((n) => n + 1);
  });
  useLayoutEffect(() => {
    if (reveal === undefined) return;
    const index = items.findIndex((item) => keyOf(item) === reveal);
    if (index >= 0) box.current!.scrollTop = Math.max(0, offsets[index]! - 12);
  }, [reveal]);

  return (
    <div {...rest} ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="spacer" style={{ height: `${offsets.at(-1)}px` }}>
        <div class="window" ref={inner} style={{ transform: `translateY(${offsets[first]}px)` }}>
          {items.slice(first, last).map((item, i) => (
            <div key={keyOf(item)} data-key={keyOf(item)} data-index={first + i}>
              {render(item)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** The index of the block at this offset. */
function indexAt(offsets: readonly number[], place: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
