/** Who may talk to the server: a browser on this machine that opened the address with the token. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';

export interface Gate {
  readonly token: string;
  /** Known once the server listens. */
  readonly port: () => number;
}

/**
 * Nothing is loaded from elsewhere, nothing inline runs, and no text becomes markup: with Trusted Types and no policy,
 * the browser itself refuses every `innerHTML`.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  'x-frame-options': 'DENY',
};

/**
 * Refuses other hosts (DNS rebinding), other origins (other pages in the browser), and requests without the
 * token.
 */
export function guardRequests({ token, port }: Gate): MiddlewareHandler {
  // Cookies of one host are shared by all its ports, so the name tells two Studios apart.
  const cookieName = () => `allium_studio_${port()}`;
  return async (c, next) => {
    const refused = problemOf(c, port());
    if (refused) return withHeaders(c.text(refused, 403));
    const given = c.req.query('token');
    if (given !== undefined && c.req.path === '/') {
      if (!isSame(given, token)) return withHeaders(c.text(NO_TOKEN, 401));
      setCookie(c, cookieName(), token, { httpOnly: true, sameSite: 'Strict', path: '/' });
      // The token leaves the address bar, the history and what is copied from there.
      return withHeaders(c.redirect('/', 303));
    }
    if (!isSame(getCookie(c, cookieName()) ?? '', token)) return withHeaders(c.text(NO_TOKEN, 401));
    await next();
    withHeaders(c.res);
  };
}

const NO_TOKEN =
  'Open the address that `allium studio` printed in your terminal: it contains the token this page needs.\n';

function problemOf(c: Context, port: number): string | undefined {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  const host = c.req.header('host') ?? '';
  if (!hosts.includes(host)) return 'Studio answers to localhost only.\n';
  const origin = c.req.header('origin');
  if (origin !== undefined && origin !== `http://${host}`) return 'This page may not talk to Studio.\n';
  const site = c.req.header('sec-fetch-site');
  if (c.req.method === 'GET' || c.req.method === 'HEAD') {
    // A link to the page itself may be clicked anywhere. Data is read by the page alone.
    const ownPage = c.req.path === '/' && c.req.header('sec-fetch-mode') === 'navigate';
    return site === 'cross-site' && !ownPage ? 'This page may not read from Studio.\n' : undefined;
  }
  if (origin === undefined) return 'A change needs an Origin header.\n';
  return site !== undefined && site !== 'same-origin' ? 'This page may not talk to Studio.\n' : undefined;
}

function withHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(HEADERS)) response.headers.set(name, value);
  return response;
}

/** Takes the same time whatever is wrong. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
