/** Pieces of a text as they stream in, cut where a reader would: what belongs together is written together. */

export interface Pieces {
  add(piece: string): void;
  /** The text is complete: writes what was held back. */
  end(): void;
  /** The text was taken back: drops what was held back. */
  drop(): void;
}

/** Made on demand: making it takes a third of the time that Node needs to start. */
let segmenter: Intl.Segmenter | undefined;

/**
 * Holds back the last character while the next piece may continue it (an emoji of several parts, a letter with its
 * joiner, half of a line break): only as a whole can it be told from hidden characters.
 */
export function makePieces(write: (text: string) => void): Pieces {
  let held = '';
  return {
    add(piece) {
      const text = held + piece;
      const end = settled(text);
      held = text.slice(end);
      if (end > 0) write(text.slice(0, end));
    },
    end() {
      if (held !== '') write(held);
      held = '';
    },
    drop() {
      held = '';
    },
  };
}

/** How much of a text can be written: where the last character begins, if more may follow that belongs to it. */
function settled(text: string): number {
  if (/[ -~\n\t]$/.test(text)) return text.length;
  // Long enough for any emoji; longer would cost more with every piece.
  const from = Math.max(0, text.length - 64);
  const whole = text.slice(from).replace(/[\ud800-\udbff]$/, '');
  let end = from;
  segmenter ??= new Intl.Segmenter('und', { granularity: 'grapheme' });
  // A joiner is nothing without the letter that follows.
  for (const { index } of segmenter.segment(whole))
    if (!/[\u200b-\u200d]/.test(whole[index - 1] ?? '')) end = from + index;
  return end;
}
