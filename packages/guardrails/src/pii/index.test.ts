import { Agent, textOf, tool } from 'allium';
import { chunks, collect, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DEFAULT_TYPES, piiDetector } from './detect.js';
import { type PiiOptions, pii } from './index.js';

const ANSWER = 'Write to ann.lee@example.org, call +44 20 7946 0958 or pay with 4111 1111 1111 1111.';
const CLEAN = 'Write to [email], call [phone] or pay with [credit-card].';

testMiddleware(() => pii(), {
  name: 'pii',
  describe,
  it,
  scenarios: [
    { name: 'data in an answer', answers: [text(ANSWER)] },
    {
      name: 'data in arguments',
      answers: [toolCalls({ name: 'kit_echo', args: { value: ANSWER } }), text('Done.')],
    },
  ],
});

testMiddleware(() => pii({ strategy: 'tokenize', key: 'k', restoreAnswer: true }), {
  name: 'pii that tokenizes',
  describe,
  it,
  scenarios: [
    { name: 'data in an answer', answers: [text(ANSWER)] },
    { name: 'data in input', input: 'I am ann@example.org', answers: [text('Hi')] },
  ],
});

const detect = piiDetector({ types: DEFAULT_TYPES });
const found = (given: string) =>
  detect(given, 0).map(({ start, end, kind }) => [kind, given.slice(start, end)]);

describe('what pii finds', () => {
  it.each([
    ['email', 'ann.lee+x@mail.example.co.uk'],
    ['email', 'jörg@bücher.example'],
    ['phone', '+1 415 555 2671'],
    ['phone', '+49 (0)30 901820'],
    ['phone', '(415) 555-2671'],
    ['credit-card', '4111 1111 1111 1111'],
    ['credit-card', '378282246310005'],
    ['iban', 'DE89 3704 0044 0532 0130 00'],
    ['iban', 'GB82WEST12345698765432'],
    ['ip', '203.0.113.77'],
    ['ip', '2001:db8:85a3::8a2e:370:7334'],
    ['mac', '3c:5a:b4:01:9f:ee'],
    ['mac', '3C5A.B401.9FEE'],
    ['ssn', '536-22-8145'],
    ['ssn', '123-45-6789'],
    ['national-id', 'RSSMRA85T10A562S'],
    ['national-id', '12345678Z'],
    ['national-id', 'AB 12 34 56 C'],
    ['national-id', '529.982.247-25'],
    ['national-id', '850709-9805'],
  ])('%s: %s', (kind, value) => {
    expect(found(`It is ${value}, I think.`)).toEqual([[kind, value]]);
    expect(found(value)).toEqual([[kind, value]]);
  });

  it.each([
    ['+44 20 7946 0958', ' 2024-01-02 10:15'],
    ['+442079460958', ' 200 1532'],
    ['0044 20 7946 0958', ' 12 calls'],
    ['+1 (415) 555-2671', ' 5 times'],
    ['+44 20 7946 0958', ' 4111 1111 1111 1111'],
  ])('a phone number with another number behind it: %s%s', (value, behind) => {
    expect(found(`It is ${value}${behind}`)[0]).toEqual(['phone', value]);
    expect(found(`Tel. 020 7946 0958${behind}`)[0]?.[0]).toBe('phone');
  });

  it('finds the credentials in an address, and leaves the rest', () => {
    expect(found('See https://ann:hunter2@x.org/a?b=c.')).toEqual([['url-credentials', 'ann:hunter2']]);
    expect(found('Use https://user:$PASSWORD@x.org.')).toEqual([]);
  });

  it('finds whole addresses, but only when asked', () => {
    const urls = piiDetector({ types: ['url'] });
    const found = (text: string) => urls(text, 0).map(({ start, end }) => text.slice(start, end));
    expect(found('See https://x.org/a?b=c#d, (http://y.example:8080/p_(1)) and <ftp://z.org>.')).toEqual([
      'https://x.org/a?b=c#d',
      'http://y.example:8080/p_(1))',
      'ftp://z.org',
    ]);
    expect(found('Or www.x.org/a, [here](https://ann:pw@x.org/b).')).toEqual([
      'https://ann:pw@x.org/b',
      'www.x.org/a',
    ]);
    expect(found('a://, std::x, http:// and www. or www.x')).toEqual([]);
  });

  it.each([1, 4, 1000])('hides an address longer than the window, in pieces of %i', async (size) => {
    const address = `https://x.org/${'path/'.repeat(60)}end`;
    const pieces = `Look at ${address} now.`.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
    const agent = new Agent({
      model: scriptedModel([chunks(...pieces)]),
      middleware: [pii({ types: ['url'] })],
    });
    const { shown } = await collect(agent.stream('Where?'));
    expect([...shown.values()]).toEqual(['Look at [url] now.']);
    const masked = new Agent({
      model: scriptedModel(['Look at https://x.org/a now, or www.y.org/b.']),
      middleware: [pii({ types: ['url'], strategy: 'mask' })],
    });
    expect((await masked.run('Where?')).text).toBe('Look at https://*** now, or www.***.');
  });

  it.each([
    'Released as version 10.0.19041.1 and v1.2.3.4, see section 3.2.1.4.',
    'npm install lodash@4.17.21 @types/node@20.1.0, logo@2x.png, git@github.com:a/b.git',
    'order 4111111111111111, IMEI 490154203237518, ISBN 978-3-16-148410-0',
    '2026-11-17 05:17:54, 1700000000000, 12:30:45, 127.0.0.1, 255.255.255.0',
    'std::vector<int> a::b, 00:00:00:00:00:00, f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
    'GB82WEST12345698765433 and 4111 1111 1111 1112 and 000-12-3456',
    '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16',
  ])('leaves alone: %s', (given) => {
    expect(found(given)).toEqual([]);
  });
});

/** What an agent with it answers when its model says this. */
async function answered(said: string, options: PiiOptions = {}): Promise<string> {
  const agent = new Agent({ model: scriptedModel([said]), middleware: [pii(options)] });
  return (await agent.run('Well?')).text;
}

describe('pii', () => {
  it('cuts the same out of an answer, however it is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 24 }), { maxLength: 12 }), async (cuts) => {
        const pieces: string[] = [];
        let rest = `${ANSWER} ${ANSWER}`;
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut));
          rest = rest.slice(cut);
        }
        const model = scriptedModel([chunks(...pieces, rest)]);
        // Ids that are made up may have the same digits by chance.
        const session = new Agent({ model, middleware: [pii()] }).session('s');
        const { events, result } = await collect(session.stream('Well?', { runId: 'r' }));
        expect(result?.text).toBe(`${CLEAN} ${CLEAN}`);
        expect(JSON.stringify(events)).not.toMatch(/ann\.lee|7946|4111/);
      }),
      { numRuns: 60 },
    );
  });

  it('cleans input, arguments at any depth, keys and numbers, results and their details', async () => {
    const seen: unknown[] = [];
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.any(),
      execute(args) {
        seen.push(args);
        return { content: 'From bob@example.org', details: { by: 'bob@example.org' } };
      },
    });
    const args = { deep: [{ 'ann@example.org': 4111111111111111 }] };
    const model = scriptedModel([toolCalls({ name: 'look', args }), text('Done.')]);
    const agent = new Agent({ model, tools: [look], middleware: [pii()] });
    const { messages } = await agent.run('I am ann@example.org');
    expect(seen).toEqual([{ deep: [{ '[email]': '[credit-card]' }] }]);
    expect(textOf(messages[0]!)).toBe('I am [email]');
    expect(JSON.stringify([messages, model.requests])).not.toMatch(/ann@|bob@|41111111/);
  });

  it.each(['input', 'result'])('cleans the names of files (%s)', async (where) => {
    const file = {
      type: 'file',
      data: 'aGk=',
      mimeType: 'text/plain',
      name: 'cv of ann@example.org (2).txt',
    } as const;
    const look = tool({ name: 'look', description: 'Looks.', input: z.any(), execute: () => [file] });
    const model = scriptedModel([toolCalls({ name: 'look', args: {} }), text('Done.')]);
    const agent = new Agent({ model, tools: [look], middleware: [pii()] });
    const { messages } = await agent.run(where === 'input' ? [file] : 'Look.');
    const all = JSON.stringify([messages, model.requests]);
    expect(all).toContain('cv of [email]');
    expect(all.match(/ann@/g) ?? []).toEqual([]);
  });

  it.each(['redact', 'mask', 'hash'] as const)('what %s leaves is not found again', async (strategy) => {
    const left = await answered(`${ANSWER} 203.0.113.77 and 3c:5a:b4:01:9f:ee`, { strategy });
    const agent = new Agent({ model: scriptedModel([left]), middleware: [pii({ strategy })] });
    const { text: again, changes } = await agent.run('Again?');
    expect(again).toBe(left);
    expect(changes).toEqual([]);
  });

  it('masks', async () => {
    expect(await answered(ANSWER, { strategy: 'mask' })).toBe(
      'Write to a***@example.org, call +** ** **** **58 or pay with **** **** **** 1111.',
    );
    expect(await answered('203.0.113.77 and 3c:5a:b4:01:9f:ee', { strategy: 'mask' })).toBe(
      '203.*** and **:**:**:01:9f:ee',
    );
  });

  it('hashes without a key, differently in each instance', async () => {
    const [first, second] = [pii({ strategy: 'hash' }), pii({ strategy: 'hash' })];
    const said = async (guard: typeof first) =>
      (await new Agent({ model: scriptedModel(['ann@x.org, ANN@x.org']), middleware: [guard] }).run('Hi'))
        .text;
    expect(await said(first)).toMatch(/^(\[email:[0-9a-f]{12}\]), \1$/);
    expect(await said(first)).toBe(await said(first));
    expect(await said(first)).not.toBe(await said(second));
  });

  it('hashes: the same for the same value however it is written, another with another key', async () => {
    const [first, second] = (
      await answered('4111 1111 1111 1111 4111-1111-1111-1111', { strategy: 'hash', key: 'k' })
    ).split(' ');
    expect(first).toMatch(/^\[credit-card:[0-9a-f]{12}\]$/);
    expect(second).toBe(first);
    expect(await answered('4111 1111 1111 1111', { strategy: 'hash', key: 'other' })).not.toBe(first);
  });

  describe('with placeholders', () => {
    const seen: unknown[] = [];
    const mail = tool({
      name: 'mail',
      description: 'Mails.',
      input: z.object({ to: z.email(), note: z.string() }),
      execute: (args) => {
        seen.push(args);
        return `Sent to ${args.to}.`;
      },
    });

    /** A model that writes the first placeholder it was told into a call, and says it. */
    const model = () =>
      scriptedModel([
        ({ messages }) => {
          const [token] = /<EMAIL_[0-9]+>/.exec(JSON.stringify(messages)) ?? ['none'];
          return toolCalls({ name: 'mail', args: { to: token, note: 'and <EMAIL_9>' } });
        },
        ({ messages }) => text(`Sent to ${/<EMAIL_[0-9]+>/.exec(JSON.stringify(messages))?.[0]}.`),
        text('Hello again, ann@example.org.'),
      ]);

    it('gives the value to tools, and placeholders to everybody else', async () => {
      seen.length = 0;
      const asked = model();
      const events: unknown[] = [];
      const agent = new Agent({
        model: asked,
        tools: [mail],
        middleware: [pii({ strategy: 'tokenize' })],
        observers: [(event) => void events.push(event)],
      });
      const session = agent.session('s');
      const first = await session.run('Mail ann@example.org');
      // What was never issued stays text.
      expect(seen).toEqual([{ to: 'ann@example.org', note: 'and <EMAIL_9>' }]);
      expect(first.text).toMatch(/^Sent to <EMAIL_1>\.$/);
      const second = await session.run('Again');
      // The same value, the same placeholder.
      expect(second.text.match(/<.*>/)![0]).toBe(first.text.match(/<.*>/)![0]);
      expect(JSON.stringify([events, asked.requests, await session.messages()])).not.toContain('ann@');
    });

    it('gives it only to tools that are named, and to the reader if asked', async () => {
      seen.length = 0;
      const middleware = [pii({ strategy: 'tokenize', restoreTools: ['other'], restoreAnswer: true })];
      const run = new Agent({ model: model(), tools: [mail], middleware }).stream('Mail ann@example.org');
      const { events, result } = await collect(run);
      expect(seen).toEqual([]);
      expect(result?.text).toBe('Sent to ann@example.org.');
      expect(JSON.stringify(result?.messages)).not.toContain('ann@');
      expect(JSON.stringify(events.filter(({ type }) => type === 'state_change'))).not.toContain('ann@');
    });
  });

  it('looks only for the chosen types, and lets allowed values pass', async () => {
    expect(await answered(ANSWER, { types: ['email'] })).toBe(
      ANSWER.replace('ann.lee@example.org', '[email]'),
    );
    expect(await answered('a@x.org b@x.org', { allow: ['A@x.org'] })).toBe('a@x.org [email]');
  });

  it.each([
    ['piiType', 'types'],
    ['applyToOutput', 'on'],
    ['maxRetries', undefined],
  ])('says what `%s` of other libraries is here', (name, here) => {
    const told = `Unknown option \`${name}\` of pii().${here ? ` Here that is \`${here}\`.` : ''} It takes: `;
    expect(() => pii({ [name]: 'email' })).toThrow(told);
  });

  it('lets nothing pass if a recognizer answers with a promise, and lets its failure end nothing', async () => {
    const recognize = (() => Promise.reject(new Error('no model'))) as never;
    await expect(answered('Ask Ann Lee.', { recognize })).rejects.toMatchObject({ code: 'GUARD_FAILED' });
  });

  it('asks a recognizer for what no pattern can find', async () => {
    const recognize = (given: string) =>
      [...given.matchAll(/Ann Lee/g)].map(({ index }) => ({ start: index, end: index + 7, kind: 'person' }));
    expect(await answered('Ask Ann Lee.', { recognize })).toBe('Ask [person].');
  });

  it('knows national numbers of countries', async () => {
    expect(await answered('020 7946 0958', {})).toBe('020 7946 0958');
    expect(await answered('020 7946 0958', { countries: ['GB'] })).toBe('[phone]');
    expect(await answered('Tel.: 020 7946 0958')).toBe('Tel.: [phone]');
  });

  it.each([
    [{ types: ['mail'] }, 'Expected `types[0]` to be '],
    [{ restoreAnswer: true }, "Expected `strategy` to be 'tokenize' beside"],
    [{ countries: ['uk'] }, 'Expected `countries[0]` to be two capitals'],
    [{ type: [] }, 'Unknown option `type` of pii(). Did you mean `types`?'],
  ])('refuses %j', (options, message) => {
    expect(() => pii(options as never)).toThrow(message);
  });
});
