/** The body of a request: JSON, or nothing at all. */
import { invalidOption } from '../kit/index.js';
import { HttpFailure } from './failures.js';

/** The body of a request, at most this many bytes long. A request without one counts as `{}`. */
export async function readBody(request: Request, limit: number): Promise<unknown> {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
  // Pages of other sites may send other types without a preflight.
  if (type !== 'application/json' && (type !== undefined || isForeign(request))) throw jsonOnly();
  const text = await readText(request, limit);
  if (text === '') return {};
  if (type === undefined) throw jsonOnly();
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFailure(400, 'INVALID_REQUEST', 'The body is not JSON.');
  }
}

/**
 * Is it sent by a page that may belong to another site? Browsers name the origin in every POST, other clients don't.
 */
function isForeign({ headers }: Request): boolean {
  return headers.has('origin') && headers.get('sec-fetch-site') !== 'same-origin';
}

function jsonOnly(): HttpFailure {
  return new HttpFailure(415, 'JSON_ONLY', 'Send JSON, with `content-type: application/json`.');
}

const BYTES = Symbol('bytes');
type WithBytes = Request & { [BYTES]?: Uint8Array };

/**
 * A server that has read the whole body can leave it here. Reading it again, from the stream that `Request` makes of
 * it, was half of the time that `serve` added before its first byte.
 */
export function keepBytes(request: WithBytes, bytes: Uint8Array): void {
  request[BYTES] = bytes;
}

async function readText(request: WithBytes, limit: number): Promise<string> {
  const tooLarge = (): HttpFailure =>
    new HttpFailure(413, 'TOO_LARGE', `The body has more than ${limit} bytes.`);
  const length = Number(request.headers.get('content-length') ?? Number.NaN);
  if (request.bodyUsed)
    throw invalidOption(
      'request',
      'one whose body is still unread: if you need it first, read a `clone()`, or in Node leave what you read as `body` of the request',
      'one that was read',
    );
  const kept = request[BYTES];
  if ((kept?.byteLength ?? length) > limit) throw tooLarge();
  if (kept) return new TextDecoder().decode(kept);
  // Servers make sure that a body has this length.
  if (length <= limit) return request.text();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (let step = await reader?.read(); step && !step.done; step = await reader!.read()) {
    size += step.value.byteLength;
    if (size > limit) {
      await reader!.cancel().catch(() => undefined);
      throw tooLarge();
    }
    chunks.push(step.value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return new TextDecoder().decode(bytes);
}
