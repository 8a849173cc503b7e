// Next.js: app/api/agent/[...path]/route.js. On platforms that end a function with its response, hand `waitUntil` over, so that
// detached runs go on: `handler(request, { waitUntil: after })`, with `after` of `next/server`.

import { handler } from '../handler.mjs';

export const dynamic = 'force-dynamic';

export const GET = (request) => handler(request);
export const POST = (request) => handler(request);
export const DELETE = (request) => handler(request);
