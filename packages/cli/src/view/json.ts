/** A run as JSON lines: one event per line, as it happens. */
import type { Io } from '../terminal/io.js';
import type { View } from './view.js';

export function jsonView(io: Io): View {
  return {
    event(event) {
      io.stdout.write(`${JSON.stringify(event)}\n`);
    },
    pause() {},
  };
}
