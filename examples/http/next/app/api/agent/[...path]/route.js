// Next.js: a route handler takes the handler as it is. `after` keeps the function alive while a detached run goes on, on
// platforms that end it with its response.

import { after } from 'next/server';
import { handler } from '../../../../handler.mjs';

export const dynamic = 'force-dynamic';

const answer = (request) => handler(request, { waitUntil: after });

export { answer as DELETE, answer as GET, answer as POST };
