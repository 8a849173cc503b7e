// Studio in a real browser: every screen, live, by keyboard, in both themes, narrow, with hostile content, and in quantity.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { startDemo, startStudio } from '@allium/studio';
import { Agent, type NewEntry, type Store, tool } from 'allium';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CHROMIUM_FLAGS, findChromium } from '../../scripts/browser.mjs';
import { build } from '../../scripts/build.mjs';
import { whenMade } from '../../scripts/once.mjs';
import { root } from '../../scripts/repository.mjs';

// What runs in the page: the types of the repository are those of Node.
declare const document: any;
declare const location: { hash: string };
declare const navigator: any;
declare const getComputedStyle: (element: unknown) => any;
declare const innerWidth: number;
declare const DataTransfer: any;

await whenMade('browser');
const program = findChromium();
if (!program)
  process.stderr.write(
    'SKIPPED: Studio in a browser. There is no Chromium: run `node scripts/browser.mjs`.\n',
  );

it('ships at most 90 kB of script, compressed', async () => {
  await build();
  const folder = join(root, 'packages/studio/web/dist/assets');
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const bytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length, 0);
  expect(scripts.length).toBeGreaterThan(0);
  expect(bytes).toBeLessThanOrEqual(90_000);
});

describe.skipIf(!program)('Studio in a browser', () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let problems: string[] = [];
  const ends: (() => unknown)[] = [];

  beforeAll(async () => {
    await build();
    browser = await chromium.launch({ executablePath: program!, args: CHROMIUM_FLAGS });
  });
  afterEach(async () => {
    await context?.close();
    for (const end of ends.splice(0).reverse()) await end();
    // No test may leave an error in the console: the policy reports there what it refused.
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(() => browser?.close());

  async function open(url: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<void> {
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    page = await context.newPage();
    problems = [];
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(url);
  }

  async function demo(options?: Parameters<Browser['newContext']>[0]): Promise<void> {
    const studio = await startDemo({ port: 0 });
    ends.push(() => studio.close());
    await open(studio.url, options);
  }

  async function over(store: Store, more: Partial<Parameters<typeof startStudio>[0]> = {}): Promise<void> {
    const studio = await startStudio({ port: 0, store, ...more });
    ends.push(() => studio.close());
    await open(studio.url);
  }

  const goTo = (hash: string) =>
    page.evaluate((to) => {
      location.hash = to;
    }, hash);

  it('shows the runs, takes the token out of the address, and filters', async () => {
    await demo();
    await page.waitForSelector('a.row');
    expect(page.url()).not.toContain('token');
    await page.getByRole('button', { name: 'failed', exact: true }).click();
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll('a.row')];
      return rows.length > 0 && rows.every((row: any) => row.textContent?.includes('failed'));
    });
    await page.getByPlaceholder('Search').fill('no such words anywhere');
    await page.getByText('No run fits').waitFor();
    await page.getByRole('button', { name: 'Clear all filters' }).click();
    await page.waitForSelector('a.row');
    await page.getByPlaceholder('Search').fill('aisle 4');
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll('a.row')];
      return rows.length > 0 && rows.every((row: any) => row.textContent?.includes('warehouse'));
    });
  });

  it('says so when there is nothing', async () => {
    await over(memoryStore());
    await page.getByText('No runs yet').waitFor();
    await goTo('#/approvals');
    await page.getByText('Nothing waits for you').waitFor();
    await goTo('#/money');
    await page.getByText('Nothing was spent').waitFor();
    await goTo('#/playground');
    await page.getByText('No agent to talk to').waitFor();
    await goTo('#/onion');
    await page.getByText('No onion yet').waitFor();
    await goTo('#/elsewhere');
    await page.getByText('There is no such screen').waitFor();
    await goTo('#/run?session=none&run=none');
    await page.getByRole('alert').getByRole('link', { name: 'To the runs' }).click();
    await page.getByText('No runs yet').waitFor();
    problems = problems.filter((one) => !one.includes('404'));
  });

  it('shows a run: its waterfall, its conversation, what the model received, and the raw request', async () => {
    await demo();
    await page.locator('a.row', { hasText: 'refund order A-1042' }).click();
    await page.getByRole('heading', { name: /My pan arrived cracked/ }).waitFor();
    expect(await page.locator('.bar').count()).toBeGreaterThanOrEqual(5);
    expect(await page.locator('.message.user').first().innerText()).toContain('[e-mail]');
    const received = page.locator('section[aria-label="What the model received"]');
    await received.getByText('call 1 of 2').waitFor();
    await received.getByRole('button', { name: 'Next call' }).click();
    await received.getByText('call 2 of 2').waitFor();
    // Each difference names the middleware that made it.
    await received.getByText(/written by house-rules/).waitFor();
    await received.getByText(/rewritten by short-results/).waitFor();
    expect(await received.locator('del').count()).toBeGreaterThan(0);
    await received.getByRole('button', { name: 'Raw request' }).click();
    await received.locator('pre').waitFor();
    expect(await received.locator('pre').innerText()).toContain('"systemPrompt"');
  });

  it('shows new runs and their progress without a reload', async () => {
    const store = memoryStore();
    await over(store);
    await page.getByText('No runs yet').waitFor();
    let goOn = () => {};
    const slow = tool({
      name: 'slow',
      description: '',
      input: z.object({}),
      execute: () => new Promise<string>((resolve) => (goOn = () => resolve('ok'))),
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'slow' }), text('All done.')]),
      tools: [slow],
      store,
    });
    const running = agent.session('live').run('Take your time');
    await page.locator('a.row', { hasText: 'Take your time' }).waitFor();
    await page.getByText('running').first().waitFor();
    await page.locator('a.row').click();
    await page.locator('.bar.tool.open').waitFor();
    goOn();
    await running;
    await page.getByText('All done.').waitFor();
    await page.locator('.status.done').waitFor();
  });

  it('answers a run that waits in another process, which goes on there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'allium-studio-'));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    const other = waitingProcess(folder);
    ends.push(() => other.child.kill());
    const store = fileStore({ dir: folder });
    await over(store, { allowAnswers: true, agents: [payer(store)] });
    await goTo('#/approvals');
    await page.getByRole('button', { name: 'Edit' }).click();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('type'));
    await expect.poll(focused, { message: 'the first field' }).toBe('number');
    await page.getByLabel('amount').fill('41');
    await page.getByRole('button', { name: 'Approve with these' }).click();
    await page.getByText('The run goes on').waitFor();
    expect(await other.ended).toContain('Paid 41.');
    await page.getByText('Nothing waits for you').waitFor();
  });

  it.each([
    ['Approve', undefined, 'Paid 40.'],
    ['Reject', 'Too much.', 'Too much.'],
    ['Respond', 'It is paid already.', 'It is paid already.'],
  ])('offers %s', async (button, words, expected) => {
    const store = memoryStore();
    const agent = payer(store);
    const running = agent.session('a').run('Pay', { onRequest: () => new Promise(() => {}) });
    await over(store, { allowAnswers: true, agents: [agent] });
    await goTo('#/approvals');
    await page.getByRole('button', { name: button, exact: true }).click();
    if (words) {
      await page.getByRole('textbox').fill(words);
      await page.getByRole('button', { name: button, exact: true }).click();
    }
    await page.getByText('Nothing waits for you').waitFor();
    const { messages } = await running;
    expect(JSON.stringify(messages)).toContain(expected);
  });

  it.each([
    ['Approve for this session', 'pay with any arguments'],
    ['Always approve this', 'pay with {'],
  ])('offers %s, shows it on the page of the run, and revokes it there', async (button, shown) => {
    const store = memoryStore();
    const agent = payer(store);
    const running = agent.session('a').run('Pay', { onRequest: () => new Promise(() => {}) });
    await over(store, { allowAnswers: true, agents: [agent] });
    await goTo('#/approvals');
    await page.getByRole('button', { name: button }).click();
    await page.getByText('Nothing waits for you').waitFor();
    await running;
    await goTo('#/runs');
    await page.locator('a.row').click();
    await page.getByText('Allowed in this session without asking: 1').click();
    expect(await page.locator('.allowances li').innerText()).toContain(shown);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('.allowances').waitFor({ state: 'detached' });
    expect(await agent.session('a').allowances()).toEqual([]);
  });

  it('only shows questions when it is read-only', async () => {
    const store = memoryStore();
    const agent = payer(store);
    await agent.session('a').run('Pay');
    await over(store, { agents: [agent] });
    await goTo('#/approvals');
    await page.getByText('--allow-answers').first().waitFor();
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    const card = page.locator('.question');
    for (const _ of ['in the inbox', 'on the page of the run']) {
      expect(await card.innerText()).toMatch(/tool pay · asked by asks · session a/);
      expect(await card.getByLabel('Details of the question').locator('.code').innerText()).toMatch(
        /"limit": 20,\s+"note": "<b>x<\/b>"/,
      );
      await goTo('#/runs');
      await page.locator('a.row').click();
      await card.waitFor();
    }
    await goTo('#/playground');
    await page.getByText('Studio is read-only').waitFor();
  });

  it('shows the onion: rings, figures, rules and guard points', async () => {
    await demo();
    await goTo('#/onion');
    await page.getByRole('heading', { name: 'The onion of support-desk' }).waitFor();
    const model = page.locator('ol.layers');
    expect((await model.locator('li').allInnerTexts()).join()).toMatch(/timeout[\s\S]*\d+ calls? · /);
    expect(await page.locator('svg.picture .ring').count()).toBe(await model.locator('li').count());
    await page.getByText('Guard points').waitFor();
    await page.getByText('transformSystemPrompt').waitFor();
    await page.getByRole('tab', { name: /^run/ }).click();
    await page.locator('svg.picture', { hasText: 'the loop' }).waitFor();
  });

  it('opens the onion where it has layers, and counts at each guard point what was found there', async () => {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([text('Fine.')]),
      middleware: [
        { name: 'around', wrapTool: (_, next) => next() },
        {
          name: 'words',
          guard: {
            on: ['input', 'output'],
            find: (words) => (words.includes('secret') ? [{ start: 0, end: 6 }] : []),
          },
        },
      ],
      ...{ store, trace: 'changes' },
    });
    await agent.session('a').run('secret');
    await over(store, { agents: [agent] });
    await goTo('#/onion');
    await page.locator('[role=tab][aria-selected=true]', { hasText: 'tool · 1' }).waitFor();
    const at = (point: string) =>
      page.locator('.rules dl > div', { has: page.getByText(point, { exact: true }) }).locator('dd');
    expect((await at('input').innerText()).trim()).toBe('words 1');
    expect((await at('output').innerText()).trim()).toBe('words');
  });

  it('plays a message twice, side by side, with a middleware switched off in one', async () => {
    await demo();
    await goTo('#/playground');
    await page.getByRole('button', { name: 'Compare side by side' }).click();
    const [a, b] = [page.locator('section.side').nth(0), page.locator('section.side').nth(1)];
    await b.getByRole('switch', { name: 'privacy' }).click();
    await page.getByLabel('Message').fill('Where is order A-1003?');
    await page.keyboard.press('Enter');
    await a.getByText(/done · /).waitFor();
    await b.getByText(/done · /).waitFor();
    expect(await a.innerText()).toContain('Write to [e-mail]');
    expect(await a.locator('.said.text').count(), 'a verdict does not cut the answer').toBe(1);
    expect(await b.innerText()).toContain('Write to desk@example.com');
    await page.getByRole('button', { name: 'Run again' }).click();
    await a.getByText(/done · /).waitFor();
    expect(await a.locator('.said.you').count()).toBe(1);
    await a.getByRole('link', { name: 'Look at the run' }).click();
    await page.locator('.bar.tool', { hasText: 'find_order' }).waitFor();
  });

  it('draws what was spent per model, tenant and session', async () => {
    await demo();
    await goTo('#/money');
    await page.locator('.chart canvas').waitFor();
    await page.getByRole('rowheader', { name: 'demo/large', exact: true }).waitFor();
    await page.getByRole('button', { name: 'per tenant' }).click();
    await page.getByRole('rowheader', { name: 'globex', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Tokens' }).click();
    await page.getByRole('button', { name: 'per session' }).click();
    await page.getByRole('rowheader', { name: 'night-check', exact: true }).waitFor();
    await page.locator('.chart canvas').waitFor();
  });

  it('opens an exported run that is dropped onto the page', async () => {
    await demo();
    await page.locator('a.row', { hasText: 'warehouse' }).first().click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export' }).click(),
    ]);
    const exported = readFileSync((await download.path())!, 'utf8');
    await context.close();
    await over(memoryStore());
    await drop('run.json', exported);
    await page.getByRole('heading', { name: /warehouse/ }).waitFor();
    expect(await page.locator('.bar', { hasText: 'demo/small' }).count()).toBe(1);
    await drop('bad.json', '{"no": "trace"}');
    await page.getByText(/bad.json could not be opened: It is not a trace/).waitFor();
    problems = problems.filter((one) => !one.includes('400'));
  });

  it('copies a run as a test that passes where it is pasted', async () => {
    await demo();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.locator('a.row', { hasText: 'refund order A-1024' }).first().click();
    await page.getByRole('button', { name: 'Copy as a test' }).click();
    await page.getByText(/Copied a test/).waitFor();
    const code = await page.evaluate(() => navigator.clipboard.readText());
    const folder = mkdtempSync(join(root, 'packages/studio/test/pasted-'));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'run.test.mjs'), code);
    const { status, output } = await nodeTest(join(folder, 'run.test.mjs'));
    expect(output).toMatch(/# pass 1/);
    expect(status).toBe(0);
    // It can fail: another answer is noticed.
    writeFileSync(join(folder, 'run.test.mjs'), code.replace('"assistant: ', '"assistant: Never. '));
    expect((await nodeTest(join(folder, 'run.test.mjs'))).status).toBe(1);
  });

  it('executes nothing of a trace, and shows what is invisible', async () => {
    const store = memoryStore();
    const hostile = [
      '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>',
      '[click](javascript:window.pwned=1) <a href="javascript:window.pwned=1">link</a>',
      '<svg onload="window.pwned=1"><foreignObject><iframe srcdoc="<script>parent.pwned=1</script>"></iframe></foreignObject></svg>',
      '\u001b]8;;http://evil.example\u0007text\u001b]8;;\u0007 \u001b[31mred\u001b[0m \u202egnp.exe',
      '{{constructor.constructor("window.pwned=1")()}} &lt;b&gt;',
    ].join('\n');
    const evil = tool({
      name: 'evil',
      description: hostile,
      input: z.object({ q: z.string() }),
      execute: () => hostile,
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'evil', args: { q: hostile } }), text(hostile)], {
        id: '<b>model</b>',
      }),
      tools: [evil],
      store,
      middleware: [{ name: '<i>mw</i>', transformSystemPrompt: () => hostile }],
    });
    await agent.session('<u>session</u>', { tenant: '<s>tenant</s>' }).run(hostile);
    await over(store, { agents: [agent] });
    await page.locator('a.row').click();
    await page.locator('.message.tool').waitFor();
    const visible = await page.locator('.flow').first().innerText();
    expect(visible).toContain('<img src=x onerror=');
    expect(visible).toContain('␛[31mred');
    expect(visible).toContain('‹U+202E›gnp.exe');
    for (const screen of ['#/money', '#/onion', '#/runs']) {
      await goTo(screen);
      await page.waitForTimeout(150);
    }
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBeUndefined();
    const made = await page.evaluate(
      () =>
        document.querySelectorAll('img, iframe, main script, a[href^="javascript"], foreignObject').length,
    );
    expect(made).toBe(0);
    // The browser itself refuses to make markup of text, should somebody ever try.
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML = '<b>x</b>';
        return 'made';
      } catch {
        return 'refused';
      }
    });
    expect(refused).toBe('refused');
    problems = problems.filter((one) => !one.includes('TrustedHTML'));
  });

  it('stays quick with a line of 10 MB', async () => {
    const store = memoryStore();
    const long = 'word '.repeat(2_000_000);
    await new Agent({ model: scriptedModel([text(long)]), store }).session('a').run('Say much');
    await over(store);
    await page.locator('a.row').click();
    await page.getByText('Show all 10,000,000 characters').first().click();
    await page.getByText('100,000 characters of 10,000,000 characters are shown').waitFor();
    expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(150_000);
  });

  it('is used by keyboard alone', async () => {
    await demo();
    await page.waitForSelector('a.row');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('k');
    expect(await page.locator('a.row[aria-current]').count()).toBe(1);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /check 24 orders/ }).waitFor();
    await page.getByText('call 1 of').waitFor();
    await page.keyboard.press(']');
    await page.getByText('call 2 of').waitFor();
    await page.keyboard.press('j');
    expect(await page.locator('.bar[aria-pressed=true]').count()).toBe(1);
    await page.keyboard.press('Escape');
    await page.waitForSelector('a.row');
    await page.keyboard.press('/');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('type'))).toBe('search');
    await page.keyboard.press('Escape');
    for (const [key, screen] of [
      ['2', 'approvals'],
      ['3', 'onion'],
      ['4', 'playground'],
      ['5', 'money'],
      ['1', 'runs'],
    ]) {
      await page.keyboard.press(key!);
      await page.waitForFunction((name) => location.hash === `#/${name}`, screen);
    }
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle);
    expect(outline).toBe('solid');
  });

  it('is light and dark, as the system or a person wants it', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await demo({ colorScheme: 'dark' });
    await page.waitForSelector('a.row');
    const dark = await ground();
    await page.keyboard.press('t');
    await page.keyboard.press('t');
    const light = await ground();
    expect(brightness(dark)).toBeLessThan(80);
    expect(brightness(light)).toBeGreaterThan(200);
    await page.reload();
    await page.waitForSelector('a.row');
    expect(await ground()).toBe(light);
  });

  it('fits a phone: nothing is wider than the screen', async () => {
    await demo({ viewport: { width: 360, height: 740 } });
    await page.waitForSelector('a.row');
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    const inSight = (what: string) =>
      page.locator(what).evaluate((one: any) => {
        const { left, right } = one.getBoundingClientRect();
        const box = one.parentElement.getBoundingClientRect();
        return left >= box.left - 1 && right <= box.right + 1;
      });
    expect(await fits()).toBe(true);
    await page.locator('a.row').first().click();
    await page.getByRole('tab', { name: 'Waterfall' }).click();
    await page.locator('.bar').first().waitFor();
    expect(await fits()).toBe(true);
    await page.getByRole('tab', { name: 'Received' }).click();
    await page.getByText('What the model received').waitFor();
    expect(await fits()).toBe(true);
    for (const screen of ['approvals', 'onion', 'playground', 'money']) {
      await goTo(`#/${screen}`);
      await page.waitForTimeout(300);
      expect(await fits(), screen).toBe(true);
      expect(await inSight('.top nav a[aria-current]'), screen).toBe(true);
    }
    // The legend is inside its card, and the table below it.
    await page.locator('.chart .u-legend').waitFor();
    const bottom = (what: string) =>
      page.locator(what).evaluate((one: any) => one.getBoundingClientRect().bottom);
    expect(await bottom('.chart .u-legend')).toBeLessThanOrEqual(await bottom('.chart'));
  });

  it('shows 10,000 runs and a run of 2,000 turns with few elements in the page', async () => {
    const store = memoryStore();
    for (let n = 0; n < 10_000; n++) await store.append(`s${n}`, 0, shortRun(n));
    await store.append('long', 0, longRun(2000));
    await over(store);
    await page.waitForSelector('a.row');
    for (let n = 0; n < 150; n++) {
      await page.keyboard.press('End');
      await page.waitForTimeout(20);
      if (await page.getByText('10,001 runs', { exact: true }).count()) break;
    }
    await page.getByText('10,001 runs', { exact: true }).waitFor();
    expect(await page.locator('a.row').count()).toBeLessThan(80);
    await goTo('#/run?session=long&run=r_long');
    await page.locator('.bar').first().waitFor();
    const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
    expect(await elements()).toBeLessThan(1500);
    await page.locator('.bars').evaluate((box) => {
      box.scrollTop = box.scrollHeight;
    });
    await page.locator('.bar', { hasText: 'Turn 2000' }).click();
    await page.locator('.message', { hasText: 'Answer 2000.' }).waitFor();
    expect(await elements()).toBeLessThan(1500);
  });

  async function drop(name: string, body: string): Promise<void> {
    const transfer = await page.evaluateHandle(
      ([file, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([content!], file!, { type: 'application/json' }));
        return data;
      },
      [name, body],
    );
    await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
  }
});

function payer(store: Store): Agent {
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    execute: ({ amount }) => `Paid ${amount}.`,
  });
  return new Agent({
    model: scriptedModel([toolCalls({ name: 'pay', args: { amount: 40 } }), text('Finished.')]),
    tools: [pay],
    store,
    middleware: [
      {
        name: 'asks',
        beforeToolCall: () => ({ ask: { title: 'May I pay?', details: { limit: 20, note: '<b>x</b>' } } }),
      },
    ],
  });
}

/** Another process, with the built package, whose run waits for an answer. */
function waitingProcess(folder: string): { child: ChildProcess; ended: Promise<string> } {
  const script = join(root, 'packages/studio/test/waiting.mjs');
  const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout!.setEncoding('utf8').on('data', (part: string) => {
    output += part;
  });
  return { child, ended: new Promise((resolve) => child.on('close', () => resolve(output))) };
}

function nodeTest(file: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', file], {
    cwd: root,
    stdio: 'pipe',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      output += part;
    });
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, output })));
}

function brightness(colour: string): number {
  const [red = 0, green = 0, blue = 0] = colour.match(/\d+/g)?.map(Number) ?? [];
  return (red + green + blue) / 3;
}

const NOW = Date.UTC(2026, 0, 1);
const said = (words: string) => [{ type: 'text' as const, text: words }];
const usage = { inputTokens: 100, outputTokens: 20, cacheRead: 0, cacheWrite: 0, totalTokens: 120 };

function shortRun(n: number): NewEntry[] {
  const runId = `r_${n}`;
  const at = NOW + n * 1000;
  const common = { v: 2, at, runId };
  return [
    { ...common, type: 'run_start', plan: [] },
    {
      ...common,
      type: 'message',
      message: { id: `${runId}.1`, role: 'user', content: said(`Question ${n}`) },
    },
    {
      ...common,
      type: 'message',
      costUsd: 0.001,
      message: { id: `${runId}.2`, role: 'assistant', content: said('Answer'), stopReason: 'stop', usage },
    },
    { ...common, type: 'run_end', status: 'done', stop: { reason: 'final' }, turns: 1 },
  ];
}

function longRun(turns: number): NewEntry[] {
  const runId = 'r_long';
  let at = NOW - 10_000_000;
  let n = 1;
  const entries: NewEntry[] = [
    { v: 2, at, type: 'run_start', runId, plan: [] },
    {
      v: 2,
      at,
      type: 'message',
      runId,
      message: { id: `${runId}.${n++}`, role: 'user', content: said('Go on and on') },
    },
  ];
  for (let turn = 1; turn <= turns; turn++) {
    const last = turn === turns;
    const call = { type: 'tool-call' as const, id: `c${turn}`, name: 'step', arguments: `{"n":${turn}}` };
    at += 900;
    entries.push({
      ...{ v: 2, at, type: 'message', runId, costUsd: 0.001 },
      message: {
        ...{ id: `${runId}.${n++}`, role: 'assistant', usage, model: 'test/long' },
        ...(last
          ? { content: said(`Answer ${turn}.`), stopReason: 'stop' as const }
          : { content: [...said(`Answer ${turn}.`), call], stopReason: 'tool-calls' as const }),
      },
    } as NewEntry);
    if (last) break;
    at += 300;
    entries.push({
      ...{ v: 2, at, type: 'tool_finished', runId },
      message: {
        id: `${runId}.${n++}`,
        role: 'tool',
        toolCallId: `c${turn}`,
        toolName: 'step',
        content: said('ok'),
        isError: false,
      },
    } as NewEntry);
  }
  return [...entries, { v: 2, at, type: 'run_end', runId, status: 'done', stop: { reason: 'final' }, turns }];
}
