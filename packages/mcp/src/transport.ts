/** How the bytes get to a server: through a program's standard input and output, or over HTTP. */

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Transport } from '@modelcontextprotocol/client';
import type { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { AlliumError } from 'allium';
import type { Headers, Settings } from './options.js';
import { withOwnSignals } from './own-signals.js';
import { type AnswerListener, tooLarge, withWatchedAnswers } from './watched-answers.js';

export interface Way {
  readonly transport: Transport;
  /** What usually explains why a program did not start: it sent too much, or what it wrote to its standard error. */
  said(): string;
}

const MAX_SAID = 2000;
const MAX_HEAD = 500;

/** What a connection wants to know of its bytes, beside the messages. */
export interface Listener extends AnswerListener {
  /** The connection was cut off because the server sent too much at once, and nobody knows what was being answered. */
  tooLarge(error: AlliumError): void;
}

export function wayTo(settings: Settings, headers: Headers, listener: Listener): Promise<Way> {
  return settings.url === undefined ? program(settings, listener) : network(settings, headers, listener);
}

async function network(
  { url, maxAnswerBytes }: Settings,
  headers: Headers,
  listener: Listener,
): Promise<Way> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const send = withWatchedAnswers(withOwnSignals(), maxAnswerBytes, listener);
  const requestInit = { headers: { ...headers } };
  const transport = new StreamableHTTPClientTransport(new URL(String(url)), { requestInit, fetch: send });
  return { transport, said: () => '' };
}

async function program(
  { command, args = [], env = {}, cwd, maxAnswerBytes }: Settings,
  listener: Listener,
): Promise<Way> {
  const { StdioClientTransport, getDefaultEnvironment } = await import('@modelcontextprotocol/client/stdio');
  const transport = new StdioClientTransport({
    command: command!,
    args: [...args],
    env: { ...getDefaultEnvironment(), ...env },
    stderr: 'pipe',
    maxBufferSize: maxAnswerBytes,
    ...(cwd !== undefined && { cwd }),
  });
  let head = '';
  onStart(transport, (child) => {
    endWithProcess(child);
    endWithUs(child);
    // Each call that waits until the program reads on is a listener, and Node would warn of a leak.
    child.stdin?.setMaxListeners(0);
    child.stdout?.on('data', (chunk) => {
      if (head.length < MAX_HEAD) head += chunk.toString();
    });
  });
  let tail = '';
  transport.stderr?.on('data', (chunk) => {
    tail = (tail + chunk).slice(-MAX_SAID);
  });
  let cutOff = '';
  transport.onerror = ({ message }) => {
    // The library has no code for it. It goes on after its other errors, such as a line that isn't a message.
    if (!message.startsWith('ReadBuffer exceeded')) return;
    const error = tooLarge(maxAnswerBytes);
    cutOff = `\n${error.message}`;
    listener.tooLarge(error);
  };
  const said = (words: string, text: string) => (text === '' ? '' : `\n${words}: ${text}`);
  return {
    transport,
    said: () =>
      cutOff +
      said('It said', tail.trim()) +
      said('Its standard output has to carry messages only, but has', strayIn(head)) +
      (cwd !== undefined && !existsSync(cwd) ? `\nThere is no folder ${JSON.stringify(cwd)}.` : ''),
  };
}

/** How long what a program has said may stay unread after its end. */
const LAST_WORDS_MS = 500;

/** The library starts the program when it connects. */
function onStart(transport: StdioClientTransport, begin: (child: ChildProcess) => void): void {
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    begin((transport as unknown as { readonly _process: ChildProcess })._process);
  };
}

/** The first line that isn't a message, which the library passes over, with the message that may follow on it. */
function strayIn(output: string): string {
  return (
    output
      .split('\n')
      .find((line) => line.trim() !== '' && !line.startsWith('{'))
      ?.slice(0, MAX_HEAD) ?? ''
  );
}

/**
 * For the library, a program has ended when nobody holds its pipes any more. A helper that it started may hold them for ever:
 * then calls would wait for their time limit, and the program would not be started again.
 */
function endWithProcess(child: ChildProcess): void {
  child.once('exit', () => {
    const timer = setTimeout(() => {
      for (const pipe of child.stdio) pipe?.destroy();
    }, LAST_WORDS_MS);
    child.once('close', () => clearTimeout(timer));
  });
}

const programs = new Set<ChildProcess>();

/** Some programs don't notice that nobody talks to them any more, and would outlive a process that ends without `close()`. */
function endWithUs(child: ChildProcess): void {
  if (programs.size === 0) process.on('exit', endPrograms);
  programs.add(child);
  child.once('exit', () => {
    programs.delete(child);
    if (programs.size === 0) process.off('exit', endPrograms);
  });
}

function endPrograms(): void {
  for (const child of programs) child.kill();
}
