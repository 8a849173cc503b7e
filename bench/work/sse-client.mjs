/** A client for the HTTP scenario, as small as it gets: it posts, counts events, and keeps nothing. */
import http from 'node:http';

const BODY = JSON.stringify({ input: 'go' });

/** An agent that keeps one connection, as browsers do. */
export const oneConnection = () => new http.Agent({ keepAlive: true, maxSockets: 1 });

/**
 * Posts, and reads to the end. Resolves with the events that came and the milliseconds to the first byte of them.
 *
 * @returns {Promise<{ events: number, firstMs: number }>}
 */
export function post(port, path, agent) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let firstMs = 0;
    let events = 0;
    let newline = false;
    const request = http.request(
      {
        port,
        path,
        agent,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'text/event-stream',
          'content-length': BODY.length,
        },
      },
      (response) => {
        response.on('data', (chunk) => {
          if (firstMs === 0) firstMs = performance.now() - start;
          for (const byte of chunk) {
            if (byte === 10 && newline) events += 1;
            newline = byte === 10 && !newline;
          }
        });
        response.on('end', () => resolve({ events, firstMs }));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(BODY);
  });
}

/** Posts to each server in turns, sends back the microseconds to the first bytes of the second half, and ends. */
if (process.argv[2] === 'first') {
  const [, , , requests, ...places] = process.argv;
  const servers = [];
  for (let i = 0; i < places.length; i += 2)
    servers.push({ port: places[i], path: places[i + 1], agent: oneConnection() });
  const taken = [];
  for (let round = 0; round < 2 * Number(requests); round++) {
    const figures = [];
    // Every other round goes backwards, so that nothing always follows the same neighbour.
    for (let i = 0; i < servers.length; i++) {
      const at = round % 2 === 0 ? i : servers.length - 1 - i;
      const { port, path, agent } = servers[at];
      figures[at] = (await post(port, path, agent)).firstMs * 1000;
    }
    if (round >= Number(requests)) taken.push(figures);
  }
  process.send(taken, () => process.exit(0));
}

/** Opens streams that stay open: run as a process of its own, so that its memory is not the server's. */
if (process.argv[2] === 'open') {
  const [, , , port, path, count] = process.argv;
  let open = 0;
  const agent = new http.Agent({ maxSockets: Number.POSITIVE_INFINITY });
  for (let i = 0; i < Number(count); i++) {
    const request = http.request(
      {
        port,
        path,
        agent,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'text/event-stream',
          'content-length': BODY.length,
        },
      },
      (response) => {
        let begun = false;
        response.on('data', () => {
          if (begun) return;
          begun = true;
          open += 1;
          if (open === Number(count)) process.send('open');
        });
      },
    );
    request.end(BODY);
  }
  process.on('message', () => process.exit(0));
}
