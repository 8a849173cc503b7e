// Next.js: the handler is a route handler as it is. Some platforms end a function with its response; `after` keeps it alive
// for a run that continues without its reader.

import { after } from 'next/server';
import { handler } from '../../../../handler.mjs';

export const dynamic = 'force-dynamic';

const answer = (request) => handler(request, { waitUntil: after });

export { answer as DELETE, answer as GET, answer as POST };
