// `useChat` of AI SDK 5, 6 and 7, in a real browser, against `serve`.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Agent, type Model, type ModelPart, tool } from 'allium';
import { serve, toNodeListener } from 'allium/http';
import { approval } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { memoryStore } from 'allium/stores/memory';
import { rolldown } from 'rolldown';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CHROMIUM_FLAGS, chatFolder, findChromium, missing } from '../../scripts/browser.mjs';
import { whenMade } from '../../scripts/once.mjs';
import { root } from '../../scripts/repository.mjs';

await whenMade('browser');
const lacks = missing();
if (lacks.length > 0)
  process.stderr.write(
    `SKIPPED: useChat in a browser. Missing: ${lacks.join(' and ')}. Run \`node scripts/browser.mjs\`.\n`,
  );

/** A model whose answers a test lets go on, piece by piece. */
type Step = (say: (text: string) => ModelPart) => AsyncGenerator<ModelPart> | Generator<ModelPart>;
let steps: Step[] = [];
const finish: ModelPart = { type: 'finish', reason: 'stop' };
const model: Model = {
  provider: 'test',
  id: 'stepped',
  stream: () => steps.shift()!((text) => ({ type: 'text', text })) as AsyncGenerator<ModelPart>,
};
const says = (text: string): Step =>
  function* (say) {
    yield say(text);
    yield finish;
  };
const calls = (name: string, args: object): Step =>
  function* () {
    yield { type: 'tool-call', id: `call-${Math.random()}`, name, arguments: JSON.stringify(args) };
    yield { type: 'finish', reason: 'tool-calls' };
  };

function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `Rain in ${city}.`,
});
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  execute: ({ amount }) => `Paid ${amount}.`,
});

const PAGE = '<!doctype html><div id="root"></div><script type="module" src="/page.js"></script>';

const VERSIONS = [
  { sdk: 5, ai: 'ai-5', react: '@ai-sdk/react-2' },
  { sdk: 6, ai: 'ai-6', react: '@ai-sdk/react-3' },
  { sdk: 7, ai: 'ai', react: '@ai-sdk/react' },
] as const;

describe.skipIf(lacks.length > 0).each(VERSIONS)('useChat of AI SDK $sdk', ({ sdk, ai, react }) => {
  let server: Server;
  let browser: any;
  let page: any;
  let url = '';
  let chats = 0;
  /** Requests for an answer that is being written. */
  const resumes: string[] = [];
  const profile = mkdtempSync(join(tmpdir(), 'allium-browser-'));

  beforeAll(async () => {
    const script = await bundle('test/page.jsx', sdk, ai, react);
    // The example uses the version that is installed under its own name.
    const app = sdk === 7 ? await bundle('src/app.jsx', sdk, ai, react) : '';
    const files: Record<string, [string, string]> = {
      '/page.js': ['text/javascript', script],
      '/app.js': ['text/javascript', app],
      '/app': ['text/html', readFileSync(join(chatFolder, 'src/index.html'), 'utf8')],
      '/style.css': ['text/css', readFileSync(join(chatFolder, 'src/style.css'), 'utf8')],
    };
    const agent = new Agent({
      model,
      store: memoryStore(),
      tools: [weather, pay],
      middleware: [
        retry({ minDelayMs: 1, maxDelayMs: 1 }),
        approval({ policy: { pay: 'ask', '*': 'allow' } }),
      ],
    });
    const api = (basePath: string) =>
      toNodeListener(
        serve({ agents: agent, authorize: () => ({ tenant: 'acme' }), basePath, sdk, show: { tools: true } }),
      );
    const apis = { [`/v${sdk}`]: api(`/v${sdk}`), '/api': api('/api') };
    server = createServer((request, response) => {
      const { pathname } = new URL(request.url!, 'http://x');
      if (pathname.endsWith('/stream')) resumes.push(pathname);
      const listener = apis[`/${pathname.split('/')[1]}`];
      if (listener) return void listener(request, response);
      const [type, body] = files[pathname] ?? ['text/html', PAGE];
      response.setHeader('content-type', type);
      response.end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const main = createRequire(join(chatFolder, 'package.json')).resolve('playwright-core');
    const { default: playwright } = await import(pathToFileURL(main).href);
    browser = await playwright.chromium.launchPersistentContext(profile, {
      executablePath: findChromium(),
      args: CHROMIUM_FLAGS,
    });
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
    rmSync(profile, { recursive: true, force: true });
  });

  beforeEach(async () => {
    steps = [];
    resumes.length = 0;
    page = await browser.newPage();
    page.setDefaultTimeout(20_000);
    await page.goto(`${url}/?chat=c${sdk}-${++chats}`);
  });
  afterEach(() => page.close());

  const send = async (text: string): Promise<void> => {
    await page.fill('#input', text);
    await page.press('#input', 'Enter');
  };
  // An expression, since these types know nothing of the browser. A function in a string would be true at once, uncalled.
  const shows = (selector: string, text: string): Promise<void> =>
    page.waitForFunction(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map((one) => one.textContent).join("|") === ${JSON.stringify(text)}`,
    );
  const ready = (): Promise<void> => shows('#status', 'ready');
  const answer = (text: string): Promise<void> => shows('.assistant .text', text);

  it('shows text as it streams', async () => {
    const half = gate();
    steps = [
      async function* (say) {
        yield say('Half ');
        await half.opened;
        yield say('and whole.');
        yield finish;
      },
    ];
    await send('Hi');
    await answer('Half ');
    expect(await page.textContent('#status')).toBe('streaming');
    half.open();
    await answer('Half and whole.');
    await ready();
    expect(await page.textContent('#error')).toBe('');
  });

  it('shows tools, what they are given and what they find', async () => {
    steps = [calls('weather', { city: 'Bergen' }), says('It rains.')];
    await send('Weather?');
    await answer('It rains.');
    await ready();
    expect(await page.textContent('.tool')).toContain('tool-weather {"city":"Bergen"} "Rain in Bergen."');
    expect(await page.getAttribute('.tool', 'data-state')).toBe('output-available');
  });

  it('asks for approval and goes on with it, after a reload too', async () => {
    for (const reloads of [false, true]) {
      steps = [calls('pay', { amount: 5 }), says(`Paid ${reloads}.`)];
      await send('Pay 5');
      await page.waitForSelector('.approve');
      await ready();
      if (reloads) {
        await page.reload();
        await page.waitForSelector('.approve');
      }
      await page.click('.approve');
      await shows('.assistant:last-of-type .text', `Paid ${reloads}.`);
      await ready();
      expect(await page.textContent('.assistant:last-of-type .tool')).toContain('"Paid 5."');
      expect(await page.locator('.approve').count()).toBe(0);
    }
    // There was never an answer to go on reading: asking for one would cross the approval.
    expect(resumes).toEqual([]);
    expect(await page.locator('section').count()).toBe(4);
  });

  it('asks for approval of one of several calls, and goes on with all of them', async () => {
    const both: Step = function* () {
      for (const [id, name, args] of [
        ['a', 'weather', { city: 'Bergen' }],
        ['b', 'pay', { amount: 5 }],
        ['c', 'weather', { city: 'Oslo' }],
      ] as const)
        yield { type: 'tool-call', id: `${id}${chats}`, name, arguments: JSON.stringify(args) };
      yield { type: 'finish', reason: 'tool-calls' };
    };
    for (const reloads of [false, true]) {
      chats++;
      steps = [both, says(`Paid ${reloads}.`)];
      await send('Pay 5, and the weather?');
      await page.waitForSelector('.approve');
      await ready();
      if (reloads) {
        await page.reload();
        await page.waitForSelector('.approve');
      }
      await page.click('.approve');
      await shows('.assistant:last-of-type .text', `Paid ${reloads}.`);
      await ready();
      const outcomes = await page.locator('.assistant:last-of-type .tool').allTextContents();
      expect(outcomes.map((told: string) => told.match(/"(Rain|Paid)[^"]*"/)?.[0])).toEqual([
        '"Rain in Bergen."',
        '"Paid 5."',
        '"Rain in Oslo."',
      ]);
      expect(steps).toEqual([]);
    }
    expect(await page.textContent('#error')).toBe('');
  });

  it('shows a denied call as denied', async () => {
    steps = [calls('pay', { amount: 5 }), says('Then not.')];
    await send('Pay 5');
    await page.click('.reject');
    await answer('Then not.');
    await ready();
    const denied = sdk === 5 ? 'output-error' : 'output-denied';
    expect(await page.getAttribute('.tool', 'data-state')).toBe(denied);
    await page.reload();
    await answer('Then not.');
    expect(await page.getAttribute('.tool', 'data-state')).toBe(denied);
  });

  it('goes on with a new message while a question waits', async () => {
    steps = [calls('pay', { amount: 5 }), says('What else?')];
    await send('Pay 5');
    await page.waitForSelector('.approve');
    await ready();
    await send('Never mind');
    await shows('.assistant:last-of-type .text', 'What else?');
    await ready();
  });

  it('takes back what a failed attempt had shown', async () => {
    const seen = gate();
    const half = gate();
    steps = [
      async function* (say) {
        yield say('Good mor');
        await seen.opened;
        throw Object.assign(new Error('busy'), { status: 503 });
      },
      async function* (say) {
        yield say('Good ');
        await half.opened;
        yield say('evening.');
        yield finish;
      },
    ];
    await send('Hi');
    await answer('Good mor');
    seen.open();
    await answer('Good ');
    expect(await page.textContent('.assistant')).not.toContain('mor');
    half.open();
    await answer('Good evening.');
    await ready();
    expect(await page.textContent('.assistant')).not.toContain('mor');
    await page.reload();
    await answer('Good evening.');
  });

  it('goes on after a reload in the middle, each piece once', async () => {
    const half = gate();
    steps = [
      calls('weather', { city: 'Bergen' }),
      async function* (say) {
        yield say('It ');
        yield say('rains ');
        await half.opened;
        yield say('again.');
        yield finish;
      },
    ];
    await send('Weather?');
    await answer('It rains ');
    await page.reload();
    await answer('It rains ');
    expect(await page.locator('section').count()).toBe(2);
    half.open();
    await answer('It rains again.');
    await ready();
    expect(await page.locator('.tool').count()).toBe(1);
    expect(await page.locator('section').count()).toBe(2);
    expect(resumes).toHaveLength(1);
  });

  it('stops, and keeps what was said', async () => {
    const half = gate();
    steps = [
      async function* (say) {
        yield say('Never ');
        await half.opened;
        yield say('ending.');
        yield finish;
      },
      says('Still here.'),
    ];
    await send('Talk');
    await answer('Never ');
    await page.click('#stop');
    await ready();
    half.open();
    await answer('Never ');
    await send('Are you there?');
    await answer('Never |Still here.');
    await ready();
  });

  it('tries another answer, and an edited question', async () => {
    steps = [says('One.'), says('Two.'), says('Three.')];
    await send('Say');
    await answer('One.');
    await ready();
    await page.click('#again');
    await answer('Two.');
    await ready();
    await page.click('.user .edit');
    await answer('Three.');
    await ready();
    await shows('.user .text', 'Edited.');
    await page.reload();
    await answer('Three.');
    await shows('.user .text', 'Edited.');
  });

  if (sdk === 7)
    it('is what the example chat is made with', async () => {
      steps = [calls('pay', { amount: 5 }), says('Paid.')];
      await page.goto(`${url}/app`);
      await page.click('.welcome button');
      await page.click('.tool .yes');
      await shows('.assistant .text', 'Paid.');
      await page.waitForSelector('.again');
      await page.waitForSelector('.session.current');
    });

  it('shows that a run failed, without its error message', async () => {
    steps = [
      // biome-ignore lint/correctness/useYield: it fails before it says anything.
      async function* () {
        throw new Error('key sk-123 is wrong');
      },
    ];
    await send('Hi');
    await shows('#status', 'error');
    expect(await page.textContent('#error')).toBe('Something went wrong.');
  });
});

/** The page with one version of the SDK, and the sources of the client. */
async function bundle(input: string, sdk: number, ai: string, react: string): Promise<string> {
  const folder = (name: string): string => join(chatFolder, 'node_modules', name);
  const build = await rolldown({
    input: join(chatFolder, input),
    platform: 'browser',
    logLevel: 'silent',
    resolve: {
      alias: {
        'allium/http/client': join(root, 'packages/allium/src/http/client/index.ts'),
        ...(sdk === 7 ? {} : { ai: folder(ai), '@ai-sdk/react': folder(react) }),
      },
      extensionAlias: { '.js': ['.ts', '.js'] },
    },
    transform: { define: { SDK: String(sdk), 'process.env.NODE_ENV': '"production"' } },
  });
  const { output } = await build.generate({ format: 'esm', codeSplitting: false } as never);
  return output[0].code;
}
