/** The options of `mcp()`: which server, how to reach it, and what it may do. */

import { AlliumError, type Context, type Model } from 'allium';
import { type Fields, isRecord, type Kind, kinds, type OptionsOf, readOptions } from 'allium/kit';

export type Headers = Readonly<Record<string, string>>;

declare module 'allium' {
  interface RunOptions {
    /** For `mcp()`: anything its `headers` function needs to know about this run. It is not journaled. */
    readonly mcp?: unknown;
  }
}

/** An object of texts. The schema is for what a file can hold. */
const TEXTS: Kind<Headers> = kinds.kind('an object of texts', isTextRecord, {
  schema: { type: 'object', additionalProperties: { type: 'string' } },
});
const LIST = kinds.listOf(kinds.text, 'a list of texts');
const COUNT = kinds.integer(1);
const URL_SCHEMA = { type: 'string', pattern: '^(https?://|\\$\\{)' };
const letters = (least: number, most: number): RegExp => new RegExp(`^[\\w-]{${least},${most}}$`);

/** The options, as data: used to check them, and to make the schema of `allium.toml`. */
export const OPTIONS = {
  /** A short name for the server, of letters, digits, `_` and `-`: tools are called `<name>_<tool>`. */
  name: kinds.required(
    kinds.kind<string>(
      '1 to 32 letters, digits, "_" or "-"',
      (value) => typeof value === 'string' && letters(1, 32).test(value),
      { schema: { type: 'string', pattern: letters(1, 32).source } },
    ),
  ),
  /** Starts the server as a program that talks over its standard input and output. */
  command: kinds.kind<string>('the name of a program', (value) => typeof value === 'string' && value !== '', {
    schema: { type: 'string', minLength: 1 },
  }),
  /** Arguments of `command`. @default [] */
  args: LIST,
  /** Environment variables for `command`, in addition to a few harmless ones such as PATH. @default {} */
  env: TEXTS,
  /** Folder in which `command` starts. @default the folder of this process, or that of the config file */
  cwd: kinds.kind<string>('a path', (value) => typeof value === 'string', { schema: { type: 'string' } }),
  /** Address of a server that speaks streamable HTTP. */
  url: kinds.kind<string | URL>('an address that begins with http:// or https://', isWebAddress, {
    schema: URL_SCHEMA,
  }),
  /**
   * HTTP headers, or a function that makes them for a run, for example from `ctx.tenant` or `ctx.options.mcp`. Runs with
   * different headers never share a connection.
   */
  headers: kinds.kind<Headers | ((ctx: Context) => Headers | Promise<Headers>)>(
    'an object of texts, or a function that makes one',
    (value) => typeof value === 'function' || isTextRecord(value),
    { schema: { type: 'object', additionalProperties: { type: 'string' } } },
  ),
  /** Put before the names of tools; `''` for none. @default '<name>_' */
  prefix: kinds.kind<string>(
    'up to 40 letters, digits, "_" or "-"',
    (value) => typeof value === 'string' && letters(0, 40).test(value),
    { schema: { type: 'string', pattern: letters(0, 40).source } },
  ),
  /** The only tools to offer, by the server's names. @default all */
  only: LIST,
  /** Tools not to offer, by the server's names. @default [] */
  except: LIST,
  /** Milliseconds that a call may take. @default 60000 */
  timeoutMs: kinds.withDefault(COUNT, 60_000),
  /** Milliseconds that connecting may take. @default 30000 */
  connectTimeoutMs: kinds.withDefault(COUNT, 30_000),
  /** May the server ask the person behind the run? Its questions suspend the run. @default true */
  elicitation: kinds.withDefault(kinds.flag, true),
  /** The model that answers when the server asks for one. @default none: servers may not use a model */
  sampling: kinds.model<Model>(),
  /** Run one call at a time on each connection. @default false */
  sequential: kinds.withDefault(kinds.flag, false),
  /** What happens if a tool is described differently than before in the session. @default 'error' */
  onChange: kinds.withDefault(kinds.oneOf('error', 'allow'), 'error'),
  /**
   * Fingerprints of tools, as `listTools()` returns them: other tools are not offered, and changed ones are an error.
   * @default none
   */
  pins: TEXTS,
  /** Continue without these tools if the server cannot be reached. @default false */
  optional: kinds.withDefault(kinds.flag, false),
  /** Longest description of a tool that the model is shown, in characters. @default 2048 */
  maxDescriptionChars: kinds.withDefault(COUNT, 2048),
  /** Largest schema of a tool, in characters of JSON; a tool with a larger one is left out. @default 65536 */
  maxSchemaChars: kinds.withDefault(COUNT, 65_536),
  /** At most this many tools are offered. @default 200 */
  maxTools: kinds.withDefault(COUNT, 200),
  /** Most bytes that a server may send at once: an answer, or one event of a stream. @default 10485760 */
  maxAnswerBytes: kinds.withDefault(COUNT, 10_485_760),
  /** Connections with different headers that are kept open. @default 100 */
  maxConnections: kinds.withDefault(COUNT, 100),
  /** Versions of the protocol: try the newest first, or speak the one of 2025. @default 'auto' for `url`, 'legacy' for `command` */
  protocol: kinds.oneOf('auto', 'legacy'),
} satisfies Fields;

export interface McpOptions extends OptionsOf<typeof OPTIONS> {}

/** The options with their defaults. Throws `INVALID_OPTION` for a wrong one. */
export function checkMcpOptions(options: McpOptions): Settings {
  const { madeWith: _, ...given } = readOptions('mcp', OPTIONS, options);
  const { name, command, url, headers } = given;
  if ((command === undefined) === (url === undefined))
    throw new AlliumError(
      'INVALID_OPTION',
      `mcp() needs \`command\`, for a program, or \`url\`, for a server on the network: ${command === undefined ? 'neither was' : 'both were'} given for "${name}".`,
    );
  if (headers !== undefined && url === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      '`headers` are for servers with a `url`. Use `env` for a program.',
    );
  if (url !== undefined && new URL(String(url)).username !== '')
    throw new AlliumError(
      'INVALID_OPTION',
      `\`url\` of MCP server "${name}" has a user name in it. Put it and its password into \`headers\`.`,
    );
  const { prefix = `${name}_`, protocol = url === undefined ? 'legacy' : 'auto' } = given;
  return { ...given, prefix, protocol };
}

export type Settings =
  ReturnType<typeof readOptions<typeof OPTIONS>> extends infer S
    ? Omit<S, 'madeWith' | 'prefix' | 'protocol'> & {
        readonly prefix: string;
        readonly protocol: 'auto' | 'legacy';
      }
    : never;

export function isTextRecord(value: unknown): value is Headers {
  return isRecord(value) && Object.values(value as object).every((one) => typeof one === 'string');
}

/** The errors of `fetch` would show the value, which may be a secret. */
export function checkHeaders(headers: Headers, { name: server }: Pick<Settings, 'name'>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new globalThis.Headers([[name, value]]);
    } catch {
      throw new AlliumError(
        'INVALID_OPTION',
        `\`headers\` of MCP server "${server}": ${JSON.stringify(name)} has characters in its name or value that HTTP doesn't allow.`,
      );
    }
  }
}

export function isWebAddress(url: unknown): boolean {
  return URL.canParse(String(url)) && /^https?:$/.test(new URL(String(url)).protocol);
}
