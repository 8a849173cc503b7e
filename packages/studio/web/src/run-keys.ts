/** The list of runs by keyboard. */
import { useEffect, useRef } from 'preact/hooks';
import type { RunRow } from '../../src/wire.js';

export function useKeys(
  rows: readonly RunRow[],
  selected: number,
  select: (index: number) => void,
  open: (row: RunRow | undefined) => void,
): void {
  // Keys may come faster than the page is drawn.
  const at = useRef(selected);
  at.current = selected;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target instanceof HTMLElement && target.closest('input, textarea, select, button, summary')) return;
      const step = STEPS[event.key];
      if (step !== undefined) {
        at.current = Math.max(0, Math.min(rows.length - 1, at.current + step));
        select(at.current);
      } else if (event.key === 'Enter' && at.current >= 0 && !(target instanceof HTMLAnchorElement))
        open(rows[at.current]);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [rows]);
}

const STEPS: Readonly<Record<string, number>> = {
  ...{ ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 },
  ...{ PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 },
};
