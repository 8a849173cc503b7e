/**
 * The screen of a chat: the conversation scrolls by above, and the line that is being typed stays at the bottom. The
 * last line of the output may be unfinished; it is right above the prompt and never takes more than one row.
 */
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline';
import type { Io, Output } from './io.js';
import { onScreen } from './style.js';
import { word } from './text.js';

/** Where text is written. A chat writes both kinds to one place, above its prompt. */
export interface Paper {
  /** Pieces of an answer. */
  text(piece: string): void;
  /** A whole line. */
  line(text: string): void;
}

export interface Screen extends Paper {
  /** Finishes the line that is being written. */
  endLine(): void;
  /** The person pressed Enter: their line has scrolled up. */
  entered(): void;
  /** Shows another prompt. */
  prompt(text: string): void;
  /** Nothing is drawn any more. */
  close(): void;
}

/**
 * Reads what a person types; `history` is newest first. A history that somebody else wrote can't control the
 * terminal.
 */
export function openReadline(io: Io, prompt: string, history: readonly string[]): Interface {
  return createInterface({
    input: io.stdin,
    output: io.stdout,
    terminal: true,
    prompt,
    history: history.map(word),
    historySize: 500,
    removeHistoryDuplicates: true,
  });
}

export function makeScreen(output: Output, readline: Interface): Screen {
  let tail = '';
  let closed = false;
  const erase = (): void => {
    moveCursor(output, 0, -readline.getCursorPos().rows - (tail === '' ? 0 : 1));
    cursorTo(output, 0);
    clearScreenDown(output);
  };
  const redraw = (): void => {
    if (tail !== '') output.write(`${tail}\n`);
    // The place where readline thinks its line began is gone: without this it would draw over what was just written.
    (readline as { prevRows?: number }).prevRows = 0;
    readline.prompt(true);
  };
  const write = (given: string): void => {
    const text = onScreen(given);
    if (closed) return void output.write(text);
    erase();
    const lines = `${tail}${text}`.split('\n');
    tail = lines.pop() ?? '';
    for (const line of lines) output.write(`${line}\n`);
    const columns = Math.max(20, output.columns ?? 80);
    while (widthOf(tail) >= columns) {
      const end = breakAt(tail, columns);
      output.write(`${tail.slice(0, end).trimEnd()}\n`);
      tail = tail.slice(end);
    }
    redraw();
  };
  const endLine = (): void => {
    if (tail !== '') write('\n');
  };
  return {
    text: write,
    line(text) {
      endLine();
      write(`${text}\n`);
    },
    endLine,
    entered() {
      tail = '';
    },
    prompt(text) {
      readline.setPrompt(onScreen(text));
      if (!closed) readline.prompt(true);
    },
    close() {
      closed = true;
    },
  };
}

/** Where to break a text that is too wide: after the last space that fits, otherwise where the row ends. */
export function breakAt(text: string, columns: number): number {
  let width = 0;
  let at = 0;
  let space = 0;
  for (const letter of text) {
    width += widthOf(letter);
    if (width >= columns) break;
    at += letter.length;
    if (letter === ' ') space = at;
  }
  return space > 0 ? space : Math.max(1, at);
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Columns a text takes: marks none, East Asian letters and pictures two. */
export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += /^\p{M}|\u200d|\ufe0f/u.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1;
  return width;
}
