/** A program in a pseudo-terminal, seen through a terminal emulator: what a person would see, and their keys. */
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import { cleanEnvironment } from '../../../scripts/run-command.mjs';

export interface TestTerminal {
  /** What is on the screen and above it, without empty lines at the end. */
  screen(): string;
  /** Waits until that is to be seen; fails with the screen when it does not come. */
  until(what: string | RegExp): Promise<string>;
  /** Presses keys. */
  type(keys: string): void;
  /** Waits until the program has ended. */
  exit(): Promise<number>;
  kill(): void;
}

export const KEYS = {
  enter: '\r',
  ctrlC: '\u0003',
  ctrlD: '\u0004',
  up: '\u001b[A',
  down: '\u001b[B',
} as const;

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
  const child = spawn(program, [...args], {
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
  child.onData((data) => emulator.write(data, look));
  let code: number | undefined;
  const exited = new Promise<number>((resolve) =>
    child.onExit(({ exitCode }) => {
      code = exitCode;
      resolve(exitCode);
      emulator.write('', look);
    }),
  );
  const screen = (): string => {
    const { active } = emulator.buffer;
    const lines = Array.from(
      { length: active.length },
      (_, row) => active.getLine(row)?.translateToString(true) ?? '',
    );
    return lines.join('\n').trimEnd();
  };
  const seen = (what: string | RegExp): boolean =>
    typeof what === 'string' ? screen().includes(what) : what.test(screen());
  return {
    screen,
    until: (what) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void): void => {
          clearTimeout(timer);
          waiting.delete(check);
          settle();
        };
        const fail = (why: string): void =>
          end(() => reject(new Error(`${why} before ${what} was to be seen. The screen:\n${screen()}`)));
        const timer = setTimeout(() => fail('20 seconds passed'), 20_000);
        const check = (): void => {
          if (seen(what)) end(() => resolve(screen()));
          else if (code !== undefined) fail(`The program ended with ${code}`);
        };
        waiting.add(check);
        check();
      }),
    type: (keys) => child.write(keys),
    exit: () => exited,
    kill: () => {
      if (code === undefined) child.kill('SIGKILL');
    },
  };
}
