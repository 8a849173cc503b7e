// How Studio copes with quantity: 10,000 runs in the file store and a run of 2,000 turns, in a real browser. Prints figures.
// Run it after `npm run build`.

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { CHROMIUM_FLAGS, findChromium } from './browser.mjs';
import { root } from './repository.mjs';

// What is built is imported by its path when it is needed: types are checked without a build.
const built = (/** @type {string} */ path) => import(join(root, 'packages', path));
const { fileStore } = await built('allium/dist/stores/file/index.js');
const { startStudio } = await built('studio/dist/index.js');

const RUNS = 10_000;
const TURNS = 2000;
const usage = { inputTokens: 900, outputTokens: 60, cacheRead: 0, cacheWrite: 0, totalTokens: 960 };
const said = (/** @type {string} */ text) => [{ type: 'text', text }];
const now = Date.now();

const folder = mkdtempSync(join(tmpdir(), 'allium-studio-'));
const store = fileStore({ dir: folder, fsync: 'never' });
for (let n = 0; n < RUNS; n++) {
  const common = { v: 2, at: now - (RUNS - n) * 1000, runId: `r_${n}` };
  store.append(`s${n}`, 0, [
    { ...common, type: 'run_start', plan: [] },
    { ...common, type: 'message', message: { id: `r_${n}.1`, role: 'user', content: said(`Question ${n}`) } },
    {
      ...common,
      type: 'message',
      costUsd: 0.001,
      message: { id: `r_${n}.2`, role: 'assistant', content: said('Answer.'), stopReason: 'stop', usage },
    },
    { ...common, type: 'run_end', status: 'done', stop: { reason: 'final' }, turns: 1 },
  ]);
}
/** @type {object[]} */
const long = [
  { v: 2, at: now, type: 'run_start', runId: 'r_long', plan: [] },
  {
    v: 2,
    at: now,
    type: 'message',
    runId: 'r_long',
    message: { id: 'r_long.1', role: 'user', content: said('Go on') },
  },
];
for (let turn = 1; turn <= TURNS; turn++) {
  const at = now + turn * 1200;
  const call = { type: 'tool-call', id: `c${turn}`, name: 'step', arguments: `{"n":${turn}}` };
  const answer = {
    id: `r_long.${turn * 2}`,
    role: 'assistant',
    usage,
    model: 'test/long',
    stopReason: 'tool-calls',
  };
  const result = {
    id: `r_long.${turn * 2 + 1}`,
    role: 'tool',
    toolCallId: call.id,
    toolName: 'step',
    isError: false,
  };
  long.push(
    {
      v: 2,
      at,
      type: 'message',
      runId: 'r_long',
      message: { ...answer, content: [...said(`Answer ${turn}. `.repeat(20)), call] },
    },
    {
      v: 2,
      at: at + 300,
      type: 'tool_finished',
      runId: 'r_long',
      message: { ...result, content: said('ok '.repeat(60)) },
    },
  );
}
store.append('long', 0, long);
store.close();

const studio = await startStudio({ port: 0, store: fileStore({ dir: folder }) });
const browser = await chromium.launch({ executablePath: findChromium(), args: CHROMIUM_FLAGS });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const figures = { load: loadavg()[0]?.toFixed(1) };
try {
  let began = performance.now();
  await page.goto(studio.url);
  await page.waitForSelector('a.row');
  Object.assign(figures, { 'first rows of 10,001 runs, ms': Math.round(performance.now() - began) });
  began = performance.now();
  while (!(await page.getByText('10,001 runs', { exact: true }).count())) {
    await page.keyboard.press('End');
    await page.waitForTimeout(10);
  }
  Object.assign(figures, { 'scrolled to the last of them, ms': Math.round(performance.now() - began) });
  Object.assign(figures, { 'longest frame while scrolling the list, ms': await longestFrame('.table') });
  Object.assign(figures, {
    'elements in the page': await page.evaluate('document.querySelectorAll("*").length'),
  });
  began = performance.now();
  await page.evaluate("location.hash = '#/run?session=long&run=r_long'");
  await page.waitForSelector('.bar');
  await page.waitForSelector('.message');
  Object.assign(figures, { 'a run of 2,000 turns opened, ms': Math.round(performance.now() - began) });
  Object.assign(figures, { 'longest frame while scrolling its waterfall, ms': await longestFrame('.bars') });
  Object.assign(figures, {
    'longest frame while scrolling its conversation, ms': await longestFrame('.flow'),
  });
  Object.assign(figures, {
    'elements in the page of the run': await page.evaluate('document.querySelectorAll("*").length'),
  });
  console.log(JSON.stringify(figures, undefined, 2));
} finally {
  await browser.close();
  await studio.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Scrolls from the top to the end in 120 frames, and measures the frames. */
function longestFrame(/** @type {string} */ selector) {
  return page.evaluate(`new Promise((resolve) => {
    const box = document.querySelector(${JSON.stringify(selector)});
    let frame = 0;
    let last = performance.now();
    let longest = 0;
    const step = () => {
      const at = performance.now();
      if (frame > 1) longest = Math.max(longest, at - last);
      last = at;
      box.scrollTop = (box.scrollHeight * frame) / 120;
      if (frame++ < 120) requestAnimationFrame(step);
      else resolve(Math.round(longest));
    };
    requestAnimationFrame(step);
  })`);
}
