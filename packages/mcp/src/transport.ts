/** How the bytes get to a server: through a program's standard input and output, or over HTTP. */

import type { Transport } from '@modelcontextprotocol/client';
import type { AlliumError } from 'allium';
import { withBoundedAnswers } from './bounded-answers.js';
import type { Headers, Settings } from './options.js';
import { withOwnSignals } from './own-signals.js';

export interface Way {
  readonly transport: Transport;
  /** What a program wrote to its standard error, which usually explains why it did not start. */
  said(): string;
}

const MAX_SAID = 2000;

/** `onTooLarge` gets the request whose answer was cut off, as it was sent. */
export function wayTo(
  settings: Settings,
  headers: Headers,
  onTooLarge: (error: AlliumError, asked: RequestInit['body']) => void,
): Promise<Way> {
  return settings.url === undefined ? program(settings) : network(settings, headers, onTooLarge);
}

async function network(
  { url, maxAnswerBytes }: Settings,
  headers: Headers,
  onTooLarge: (error: AlliumError, asked: RequestInit['body']) => void,
): Promise<Way> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const send = withBoundedAnswers(withOwnSignals(), maxAnswerBytes, onTooLarge);
  const requestInit = { headers: { ...headers } };
  const transport = new StreamableHTTPClientTransport(new URL(String(url)), { requestInit, fetch: send });
  return { transport, said: () => '' };
}

async function program({ command, args = [], env = {}, cwd, maxAnswerBytes }: Settings): Promise<Way> {
  const { StdioClientTransport, getDefaultEnvironment } = await import('@modelcontextprotocol/client/stdio');
  const transport = new StdioClientTransport({
    command: command!,
    args: [...args],
    env: { ...getDefaultEnvironment(), ...env },
    stderr: 'pipe',
    maxBufferSize: maxAnswerBytes,
    ...(cwd !== undefined && { cwd }),
  });
  let tail = '';
  transport.stderr?.on('data', (chunk) => {
    tail = (tail + chunk).slice(-MAX_SAID);
  });
  return { transport, said: () => (tail.trim() === '' ? '' : `\nIt said: ${tail.trim()}`) };
}
