/** What `serve` adds to a loop that writes events as they come. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare, probe } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const COUNT = 2000;
const NODE = 'bare loop on node:http';
const BARE = 'bare fetch handler';
const OWN = 'allium/http';
const FIRST = 'first byte';

export async function run({ settings, progress }) {
  const events = await compare(
    [
      { label: NODE, contender: 'bare-sse', job: 'events', variants: [variant()] },
      { label: BARE, contender: 'bare-sse', job: 'fetchEvents', variants: [variant()] },
      { label: OWN, contender: 'allium-http', job: 'events', variants: [variant()] },
    ],
    settings,
    progress,
  );
  const task = { requests: settings.quick ? 300 : 2000 };
  const first = await probe(
    [{ label: FIRST, contender: 'http-first-byte', job: 'firstByte', probe: task }],
    settings.rounds,
    progress,
  );
  const crowd = { streams: settings.quick ? 200 : 1000 };
  const open = await probe(
    [
      { label: NODE, contender: 'bare-sse', job: 'open', probe: crowd },
      { label: BARE, contender: 'bare-sse', job: 'fetchOpen', probe: crowd },
      { label: OWN, contender: 'allium-http', job: 'open', probe: crowd },
    ],
    settings.quick ? 1 : 3,
    progress,
  );
  const against = (results, label, other) => {
    const [own, bare] = [OWN, other].map((name) => cell(results, name, label));
    return own && bare && ratio(own, bare);
  };
  const firstRows = [
    [NODE, 'node'],
    [BARE, 'fetching'],
    [OWN, 'serve'],
  ].map(([label, figure]) => {
    const { error } = first[0];
    return error ? { label, error } : { label, cells: new Map([[FIRST, cell(first, FIRST, figure)]]) };
  });
  return {
    title: 'HTTP',
    about: `Server-sent events over a loopback connection: one answer of ${COUNT.toLocaleString('en')} pieces, read to its end; the time to the first byte of an answer of one piece, the servers asked in turns, ${task.requests.toLocaleString('en')} times each in each of ${settings.rounds} processes; and ${crowd.streams.toLocaleString('en')} streams that a client in another process holds open. All run the same agent and write the same payload; the bare fetch handler runs on toNodeListener(), as serve() does. The client is in the process of the server for the long answer, and in another one for the first byte and the open streams.`,
    sections: [
      { results: events, unit: 'µs per event', baseline: BARE },
      { results: firstRows, unit: 'µs', baseline: BARE },
      { results: open, unit: 'value', variant: 'figure' },
    ],
    checks: [
      atMost('time per event, to a bare loop on node:http', against(events, 'events', NODE), 2, '×'),
      atMost('time per event, to a bare fetch handler', against(events, 'events', BARE), 2, '×'),
      atMost('first byte, to a bare fetch handler', cell(first, FIRST, 'toFetching'), 1.15, '×'),
      reported('first byte, to a bare loop on node:http', cell(first, FIRST, 'toNode'), '×'),
      reported('heap of an open stream', cell(open, OWN, 'heapKB'), 'KB'),
      reported('resident memory of an open stream', cell(open, OWN, 'residentKB'), 'KB'),
    ],
  };
}

function variant() {
  return { label: 'events', params: { count: COUNT }, units: COUNT };
}
