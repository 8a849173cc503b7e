/** Serves Studio on this machine. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Agent, Store } from 'allium';
import { toNodeListener } from 'allium/http';
import { checkFields, type Fields, kinds } from 'allium/kit';
import { type AppOptions, createApp } from './app.js';

export interface StudioOptions extends Omit<AppOptions, 'token' | 'port'> {
  /** @default 4280, or a free one if that is taken */
  readonly port?: number;
  /** @default random */
  readonly token?: string;
}

export interface Studio {
  /** With the token: open this one. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

const PORT = 4280;

const { flag, func, listOf, methods, nonEmptyText, required, text } = kinds;

const OPTIONS = {
  store: required(methods<Store>('append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take')),
  agents: listOf(kinds.kind<Agent>('an agent', (value) => typeof value?.session === 'function')),
  allowAnswers: flag,
  port: kinds.integer(0, 65_535),
  token: nonEmptyText,
  storeName: text,
  problem: text,
  demo: flag,
  onAnswered: func(),
} satisfies Fields;

/**
 * Serves Studio over a store. It listens on the loopback interface only, and answers only to a browser that opened `url`.
 *
 * @example
 * const studio = await startStudio({ store, agents: [agent] });
 * console.log(studio.url);
 */
export async function startStudio(options: StudioOptions): Promise<Studio> {
  checkFields('startStudio()', OPTIONS, options);
  const token = options.token ?? randomBytes(24).toString('base64url');
  let port = 0;
  const app = createApp({ ...options, token, port: () => port });
  const server = createServer(toNodeListener(app.fetch));
  const listen = (wanted: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  try {
    await listen(options.port ?? PORT);
  } catch (error) {
    if (options.port !== undefined || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    await listen(0);
  }
  ({ port } = server.address() as AddressInfo);
  return {
    url: `http://127.0.0.1:${port}/?token=${token}`,
    port,
    close() {
      app.close();
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
