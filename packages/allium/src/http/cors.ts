/** Which pages of other origins may call the handler. By default none. */

export interface CorsOptions {
  /** Origins such as `https://app.example.com`, or `'*'` for all. */
  readonly origins: readonly string[] | '*';
  /** Whether cookies are sent along; not with `'*'`. @default false */
  readonly credentials?: boolean;
}

export function corsHeaders(request: Request, { origins, credentials = false }: CorsOptions): Headers {
  const headers = new Headers();
  const origin = request.headers.get('origin');
  if (origin === null || (origins !== '*' && !origins.includes(origin))) return headers;
  headers.set('access-control-allow-origin', origins === '*' ? '*' : origin);
  headers.set('access-control-expose-headers', 'x-session-id');
  headers.set('vary', 'origin');
  if (credentials && origins !== '*') headers.set('access-control-allow-credentials', 'true');
  return headers;
}

export function preflight(request: Request, options: CorsOptions): Response {
  const headers = corsHeaders(request, options);
  if (headers.has('access-control-allow-origin')) {
    headers.set('access-control-allow-methods', 'GET, POST, DELETE');
    // Who may ask is decided by the origin. What `authorize` looks at is up to you.
    const asked = request.headers.get('access-control-request-headers');
    if (asked !== null) headers.set('access-control-allow-headers', asked);
    headers.set('access-control-max-age', '600');
  }
  return new Response(undefined, { status: 204, headers });
}
