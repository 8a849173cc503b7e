/** Catches what others write to the console while the command line draws, so that it gets its own line. */
import { format } from 'node:util';

const METHODS = ['log', 'info', 'debug', 'warn', 'error'] as const;

/**
 * Passes lines of the console to `write` until the returned function is called. A `write` that logs does not loop.
 */
export function catchConsole(write: (line: string) => void): () => void {
  const before = METHODS.map((method) => console[method]);
  let writing = false;
  for (const [index, method] of METHODS.entries())
    console[method] = (...values: unknown[]) => {
      if (writing) return before[index]!.apply(console, values);
      writing = true;
      try {
        for (const line of format(...values).split('\n')) write(line);
      } finally {
        writing = false;
      }
    };
  return () => {
    for (const [index, method] of METHODS.entries()) console[method] = before[index]!;
  };
}
