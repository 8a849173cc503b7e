/** What `mcp()` takes: which server, how it is reached, and what it may do. */

import { AlliumError, type Context, type Model } from 'allium';
import {
  checkFunction,
  checkInteger,
  checkMethods,
  checkOneOf,
  checkOptions,
  invalidOption,
  isRecord,
} from 'allium/kit';

export interface McpOptions {
  /** A short name for the server, of letters, digits, `_` and `-`: tools are called `<name>_<tool>`. */
  readonly name: string;
  /** Starts the server as a program that talks over its standard input and output. */
  readonly command?: string;
  /** Arguments of `command`. @default [] */
  readonly args?: readonly string[];
  /** Environment variables for `command`, beside a few harmless ones such as PATH. @default {} */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder in which `command` starts. @default the folder of this process */
  readonly cwd?: string;
  /** Address of a server that speaks streamable HTTP. */
  readonly url?: string | URL;
  /**
   * HTTP headers, or a function that makes them for a run, for example from `ctx.tenant` or `ctx.options.mcp`. Runs with
   * different headers never share a connection.
   */
  readonly headers?: Headers | ((ctx: Context) => Headers | Promise<Headers>);
  /** Put before the names of tools; `''` for none. @default '<name>_' */
  readonly prefix?: string;
  /** The only tools to offer, by the server's names. @default all */
  readonly only?: readonly string[];
  /** Tools not to offer, by the server's names. @default [] */
  readonly except?: readonly string[];
  /** Milliseconds that a call may take. @default 60000 */
  readonly timeoutMs?: number;
  /** Milliseconds that connecting may take. @default 30000 */
  readonly connectTimeoutMs?: number;
  /** May the server ask the person behind the run? Its questions suspend the run. @default true */
  readonly elicitation?: boolean;
  /** The model that answers when the server asks for one. @default none: servers may not use a model */
  readonly sampling?: Model;
  /** Run one call at a time on each connection. @default false */
  readonly sequential?: boolean;
  /** What happens when a tool is described otherwise than before in the session. @default 'error' */
  readonly onChange?: 'error' | 'allow';
  /** Fingerprints of tools, as `listTools()` tells them: other tools are not offered, and changed ones are an error. @default none */
  readonly pins?: Readonly<Record<string, string>>;
  /** Go on without these tools if the server cannot be reached. @default false */
  readonly optional?: boolean;
  /** Longest description of a tool that the model is shown, in characters. @default 2048 */
  readonly maxDescriptionChars?: number;
  /** Largest schema of a tool, in characters of JSON; a tool with a larger one is left out. @default 65536 */
  readonly maxSchemaChars?: number;
  /** At most this many tools are offered. @default 200 */
  readonly maxTools?: number;
  /** Connections with different headers that are kept open. @default 100 */
  readonly maxConnections?: number;
  /** Versions of the protocol: try the newest first, or speak the one of 2025. @default 'auto' for `url`, 'legacy' for `command` */
  readonly protocol?: 'auto' | 'legacy';
}

export type Headers = Readonly<Record<string, string>>;

declare module 'allium' {
  interface RunOptions {
    /** For `mcp()`: anything that its `headers` function wants to know about this run. It is not journaled. */
    readonly mcp?: unknown;
  }
}

const NAMES = [
  'name',
  'command',
  'args',
  'env',
  'cwd',
  'url',
  'headers',
  'prefix',
  'only',
  'except',
  'timeoutMs',
  'connectTimeoutMs',
  'elicitation',
  'sampling',
  'sequential',
  'onChange',
  'pins',
  'optional',
  'maxDescriptionChars',
  'maxSchemaChars',
  'maxTools',
  'maxConnections',
  'protocol',
];

/** The options with their defaults. Throws `INVALID_OPTION` for a wrong one. */
export function checkMcpOptions(options: McpOptions): Settings {
  checkOptions('mcp', options, NAMES);
  const { name, command, url, headers, sampling } = options;
  if (typeof name !== 'string' || !/^[\w-]{1,32}$/.test(name))
    throw invalidOption('name', '1 to 32 letters, digits, "_" or "-"', name);
  if ((command === undefined) === (url === undefined))
    throw new AlliumError(
      'INVALID_OPTION',
      `mcp() needs \`command\`, for a program, or \`url\`, for a server on the network: ${command === undefined ? 'neither' : 'both'} was given for "${name}".`,
    );
  checkReach(options);
  const settings = {
    prefix: `${name}_`,
    timeoutMs: 60_000,
    connectTimeoutMs: 30_000,
    elicitation: true,
    sequential: false,
    onChange: 'error',
    optional: false,
    maxDescriptionChars: 2048,
    maxSchemaChars: 65_536,
    maxTools: 200,
    maxConnections: 100,
    protocol: url === undefined ? 'legacy' : 'auto',
    ...defined(options),
  } as Settings;
  if (typeof settings.prefix !== 'string' || !/^[\w-]{0,40}$/.test(settings.prefix))
    throw invalidOption('prefix', 'up to 40 letters, digits, "_" or "-"', settings.prefix);
  for (const option of [
    'timeoutMs',
    'connectTimeoutMs',
    'maxDescriptionChars',
    'maxSchemaChars',
    'maxTools',
    'maxConnections',
  ] as const)
    checkInteger(option, settings[option], 1);
  for (const option of ['elicitation', 'sequential', 'optional'] as const)
    if (typeof settings[option] !== 'boolean') throw invalidOption(option, 'true or false', settings[option]);
  checkOneOf('onChange', settings.onChange, ['error', 'allow']);
  checkOneOf('protocol', settings.protocol, ['auto', 'legacy']);
  if (typeof headers === 'function') checkFunction('headers', headers);
  if (sampling !== undefined) checkMethods('sampling', sampling, ['stream']);
  return settings;
}

export type Settings = McpOptions &
  Required<
    Pick<
      McpOptions,
      | 'prefix'
      | 'timeoutMs'
      | 'connectTimeoutMs'
      | 'elicitation'
      | 'sequential'
      | 'onChange'
      | 'optional'
      | 'maxDescriptionChars'
      | 'maxSchemaChars'
      | 'maxTools'
      | 'maxConnections'
      | 'protocol'
    >
  >;

function checkReach({ command, args, env, cwd, url, headers, only, except, pins }: McpOptions): void {
  if (command !== undefined && (typeof command !== 'string' || command === ''))
    throw invalidOption('command', 'the name of a program', command);
  if (cwd !== undefined && typeof cwd !== 'string') throw invalidOption('cwd', 'a path', cwd);
  if (url !== undefined && !isWebAddress(url))
    throw invalidOption('url', 'an address that begins with http:// or https://', url);
  for (const [option, list] of Object.entries({ args, only, except }))
    if (list !== undefined && !(Array.isArray(list) && list.every((one) => typeof one === 'string')))
      throw invalidOption(option, 'a list of texts', list);
  for (const [option, record] of Object.entries({
    env,
    pins,
    ...(typeof headers !== 'function' && { headers }),
  }))
    if (record !== undefined && !isTextRecord(record))
      throw invalidOption(option, 'an object of texts', record);
  if (headers !== undefined && url === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      '`headers` are for servers with a `url`. Use `env` for a program.',
    );
}

export function isTextRecord(value: unknown): value is Headers {
  return isRecord(value) && Object.values(value as object).every((one) => typeof one === 'string');
}

function isWebAddress(url: string | URL): boolean {
  return URL.canParse(String(url)) && /^https?:$/.test(new URL(String(url)).protocol);
}

/** What is undefined means its default. */
function defined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}
