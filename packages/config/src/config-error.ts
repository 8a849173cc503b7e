/** What is wrong with a config file, and where. */
import { AlliumError } from 'allium';

/**
 * `CONFIG_NOT_FOUND`, `CONFIG_INVALID`, `CONFIG_UNTRUSTED` (it belongs to another user), `CONFIG_VARIABLE` (a
 * variable is not set), `UNKNOWN_NAME`, `PLUGIN_INVALID`, or the code of the error that a factory raised.
 */
export class ConfigError extends AlliumError {
  override readonly name = 'ConfigError';
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Path of the key, as in `allium.limits.turns` or `allium.middleware.chain[2]`. */
  readonly key: string | undefined;

  constructor(
    code: string,
    problem: string,
    where: {
      file?: string;
      line?: number;
      key?: string;
      cause?: unknown;
      data?: Record<string, unknown>;
    } = {},
  ) {
    const { file, line, key, data } = where;
    const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
    super(code, `${place}${key === undefined ? '' : `\`${key}\`: `}${problem}`, {
      data: { ...data, file, line, key },
      ...('cause' in where && { cause: where.cause }),
    });
    this.file = file;
    this.line = line;
    this.key = key;
  }
}
