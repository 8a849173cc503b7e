// Records the runs that `allium studio --demo` shows: the demo's agent, on a clock that stands still until it is told to
// go on, with ids that count. Two recordings are the same, byte for byte. Run it after `npm run build`.

import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './repository.mjs';

// What is built is imported by its path when it is needed: types are checked without a build.
const built = (/** @type {string} */ path) => import(join(root, 'packages', path));
const { sleep } = await built('allium/dist/index.js');
const { memoryStore } = await built('allium/dist/stores/memory/index.js');
const { fakeClock } = await built('allium/dist/testing/index.js');
const { demoAgent } = await built('studio/dist/demo-agent.js');

const DAY = 86_400_000;
const BEGIN = Date.UTC(2026, 0, 5, 8);

const clock = fakeClock(BEGIN);
const store = memoryStore();
let ids = 0;
const newId = () => createHash('sha256').update(`demo ${ids++}`).digest('hex').slice(0, 12);
const pause = (/** @type {number} */ ms) => sleep(ms, undefined, clock);

/** Lets time pass while something runs, from one timer to the next. */
async function timed(/** @type {Promise<unknown>} */ running) {
  let done = false;
  const end = running.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  while (!done) if (!(await clock.advanceToNext())) await new Promise((resolve) => setImmediate(resolve));
  await end;
}

const TENANTS = ['acme', 'globex', 'initech'];
const QUESTIONS = [
  'Where is my order A-1043?',
  'Can I return a pan I have used once? What is your policy?',
  'Where is order A-1001? And what is your return policy?',
  'Is the pan of order A-1055 in stock at the warehouse?',
  'My candles arrived broken, I want my money back for A-1180. I am ann@example.com.',
  'Urgent: where is A-1310?',
  'What can you do for me?',
  'I forgot my password, can you tell me?',
  'Please refund order A-1024, the lid is cracked.',
  'Where is order A-1022?',
  'During the outage yesterday my order A-1500 vanished.',
  'Help me with a return of A-1240, please.',
];

let asked = 0;
for (let day = 0; day < 14; day++) {
  const runs = 3 + ((day * 5) % 4);
  for (let n = 0; n < runs; n++) {
    const index = day * 7 + n;
    const tenant = TENANTS[index % TENANTS.length];
    const agent = demoAgent({ store, clock, newId, tenant, pause }, index % 4 === 3);
    const session = agent.session(`desk-${String(index).padStart(3, '0')}`);
    await timed(session.run(QUESTIONS[asked++ % QUESTIONS.length] ?? ''));
    // People who wait for an answer get one, except in the last days.
    const [request] = await session.pending();
    if (request && day < 12) {
      await clock.advance(95_000 + index * 1000);
      const decision =
        index % 5 === 0 ? { type: 'reject', reason: 'The photo shows no damage.' } : { type: 'approve' };
      await session.answer(request.id, /** @type {any} */ (decision));
      await timed(session.resume());
    }
    if (index % 6 === 1 && !request) await timed(session.run('Thank you. And what is your return policy?'));
    await clock.advance(17 * 60_000 + index * 7919);
  }
  if (day === 13) break;
  await clock.advance(DAY - ((clock.now() - BEGIN) % DAY));
}
const long = demoAgent({ store, clock, newId, tenant: 'acme', pause }).session('night-check');
await timed(long.run('Please check 24 orders of last night.'));
await clock.advance(60_000);
const last = demoAgent({ store, clock, newId, tenant: 'globex', pause }).session('desk-099');
await timed(last.run('My pan arrived cracked. Please refund order A-1042, my address is bob@example.com.'));

const lines = [];
for (const { sessionId } of store.list({ limit: 1000 }).sessions.toReversed()) {
  // The id of an answer's post is random, and nobody waits for it any more.
  /** @type {Record<string, unknown>[]} */
  const stored = store.read(sessionId, 1);
  const entries = stored.map(({ seq: _, ...entry }) => ({ ...entry, postId: undefined }));
  lines.push(JSON.stringify({ sessionId, entries }));
}
const folder = join(root, 'packages', 'studio', 'demo');
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'runs.jsonl'), `${lines.join('\n')}\n`);
console.log(`${lines.length} sessions, ${Math.round(lines.join('\n').length / 1000)} kB`);
