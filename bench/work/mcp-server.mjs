/** The server behind the MCP scenario: `@modelcontextprotocol/server-everything` in a process of its own. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const SERVER = join(
  dirname(require.resolve('@modelcontextprotocol/server-everything/package.json')),
  'dist/index.js',
);

/** How to start it as a program. */
export const program = { command: process.execPath, args: [SERVER, 'stdio'] };

/** Starts it on a port; it ends with this process. */
export async function listening() {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port) };
  const child = spawn(process.execPath, [SERVER, 'streamableHttp'], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  process.on('exit', () => child.kill());
  let said = '';
  await new Promise((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      said += chunk;
      if (said.includes('listening on port')) resolve();
    });
    child.once('exit', () => reject(new Error(`The server did not start: ${said}`)));
  });
  return `http://127.0.0.1:${port}/mcp`;
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
