/** A program in a pseudo-terminal, seen through a terminal emulator: what a person would see, and their keys. */
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { cleanEnvironment } from '../../../scripts/run-command.mjs';

export interface TestTerminal {
  /** What is on the screen and above it, without empty lines at the end. */
  screen(): string;
  /** Waits until that is to be seen; fails with the screen when it does not come. */
  until(what: string | RegExp): Promise<string>;
  /** Every byte that the program wrote. */
  raw(): string;
  /** Presses keys. */
  type(keys: string): void;
  /** Waits until the program has ended. */
  exit(): Promise<number>;
  /** Closes the terminal, as a window is closed: the program gets SIGHUP and has nowhere to write to. */
  hangUp(): void;
  kill(): void;
}

export const KEYS = {
  enter: '\r',
  ctrlC: '\u0003',
  ctrlD: '\u0004',
  up: '\u001b[A',
  down: '\u001b[B',
} as const;

/** Ctrl-C is for the program: the shell lives on to say how that ended. */
const SHELL = 'trap : INT; "$@"; printf "\\n[ended with %s]\\n" "$?"; while read -r _; do :; done';
const ENDED = /\[ended with (\d+)\]\s*$/;

export function openTerminal(
  program: string,
  args: readonly string[],
  {
    cwd,
    env = {},
    cols = 100,
    rows = 40,
  }: { cwd: string; env?: Record<string, string>; cols?: number; rows?: number },
): TestTerminal {
  const emulator = new xterm.Terminal({ cols, rows, scrollback: 1000, allowProposedApi: true });
  const { CI: _, NO_COLOR: __, ...inherited } = cleanEnvironment();
  // A shell around it tells how it ended and stays, for what a program says last is lost when its terminal goes with it.
  const child = spawn('/bin/sh', ['-c', SHELL, 'sh', program, ...args], {
    cwd,
    cols,
    rows,
    name: 'xterm-256color',
    env: { ...inherited, ...env } as Record<string, string>,
  });
  const waiting = new Set<() => void>();
  const look = (): void => {
    for (const check of [...waiting]) check();
  };
  let raw = '';
  child.onData((data) => {
    raw += data;
    emulator.write(data, look);
  });
  const everything = (): string => {
    const { active } = emulator.buffer;
    const lines = Array.from(
      { length: active.length },
      (_, row) => active.getLine(row)?.translateToString(true) ?? '',
    );
    return lines.join('\n').trimEnd();
  };
  const code = (): number | undefined => {
    const ended = ENDED.exec(everything())?.[1];
    return ended === undefined ? undefined : Number(ended);
  };
  const screen = (): string => everything().replace(ENDED, '').trimEnd();
  const seen = (what: string | RegExp): boolean =>
    typeof what === 'string' ? screen().includes(what) : what.test(screen());
  /** Settles when `done` says so; fails with the screen when it does not come to that. */
  const wait = (what: string, done: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        waiting.delete(check);
        settle();
      };
      const fail = (why: string): void =>
        end(() => reject(new Error(`${why} before ${what}. The screen:\n${everything()}`)));
      const timer = setTimeout(() => fail('120 seconds passed'), 120_000);
      const check = (): void => {
        if (done()) end(resolve);
        else if (code() !== undefined) fail(`The program ended with ${code()}`);
      };
      waiting.add(check);
      check();
    });
  return {
    screen,
    until: (what) => wait(`${what} was to be seen`, () => seen(what)).then(screen),
    raw: () => raw,
    type: (keys) => child.write(keys),
    exit: () => wait('it ended', () => code() !== undefined).then(() => code()!),
    hangUp: () => child.kill('SIGHUP'),
    kill() {
      try {
        // The shell leads the group that the program is in.
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It is gone already.
      }
    },
  };
}
