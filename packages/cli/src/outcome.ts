/** How a command ends: every exit code and its meaning. */
import { AlliumError, RunError, type RunStatus } from 'allium';

/** The exit codes, by name. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  config: 3,
  stopped: 4,
  suspended: 5,
  hungUp: 129,
  aborted: 130,
  terminated: 143,
} as const;

/** For `--help` and the docs: a test keeps both equal to it. */
export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [EXIT.done, 'done'],
  [EXIT.failed, 'failed: the run ended in an error, or a check found something wrong'],
  [EXIT.usage, 'the command line makes no sense'],
  [EXIT.config, 'the config file is missing or wrong'],
  [EXIT.stopped, 'stopped before its end: by a limit, a guard or a middleware'],
  [EXIT.suspended, 'suspended: it waits for an answer, see `allium approve`'],
  [EXIT.hungUp, 'ended by SIGHUP: its terminal is gone, the run can be resumed'],
  [EXIT.aborted, 'aborted with Ctrl-C'],
  [EXIT.terminated, 'ended by SIGTERM: the run can be resumed'],
];

/** For the end of a help text. */
export function exitCodes(): string {
  return `Exit codes:\n${EXIT_CODES.map(([code, means]) => `  ${String(code).padEnd(4)} ${means}`).join('\n')}`;
}

/** A command line that makes no sense, or asks for something that doesn't exist. The message is for people. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';
}

export function exitCodeOf(status: RunStatus): number {
  return status === 'error' ? EXIT.failed : EXIT[status];
}

const CONFIG_CODES = new Set([
  'CONFIG_NOT_FOUND',
  'CONFIG_INVALID',
  'CONFIG_UNTRUSTED',
  'CONFIG_VARIABLE',
  'PLUGIN_INVALID',
  'UNKNOWN_NAME',
]);

export function exitCodeOfError(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof RunError) return exitCodeOf(error.result.status);
  if (isConfigError(error)) return EXIT.config;
  return EXIT.failed;
}

/** By name, not by class: a project may bring another copy of the package. */
export function isConfigError(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === 'ConfigError' || (error instanceof AlliumError && CONFIG_CODES.has(error.code)))
  );
}

/** Is it a session that exists but can't be read? */
export function isDamage(error: unknown): boolean {
  return codeOf(error) === 'SESSION_CORRUPT';
}

/** What went wrong, for people: the message, and its causes if they say something new. */
export function describeError(error: unknown): string {
  const lines: string[] = [];
  let one: unknown = error;
  while (one !== undefined && one !== null && lines.length < 4) {
    const text = one instanceof Error ? one.message : String(one);
    if (text && !lines.some((line) => line.includes(text))) lines.push(text);
    one = one instanceof Error ? one.cause : undefined;
  }
  return lines.map((line, i) => (i === 0 ? line : `  because: ${line}`)).join('\n');
}

export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
