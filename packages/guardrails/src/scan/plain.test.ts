import { Agent, tool } from 'allium';
import { chunks, collect, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DEFAULT_TYPES, piiDetector } from '../pii/detect.js';
import { type PiiOptions, pii } from '../pii/index.js';
import { secretDetector } from '../secrets/detect.js';
import { secrets } from '../secrets/index.js';
import { readPlain } from './plain.js';

const findPii = piiDetector({ types: DEFAULT_TYPES });
const findSecrets = secretDetector({ entropy: true });
const TOKEN = 'ghp_9aK3mZq7Lw2Xc8Vb5Nf1Rt6Yp0Hs4Jd2Gk3B';

const VALUES = [
  ['email', 'ann@x.org'],
  ['phone', '+442079460958'],
  ['credit-card', '4111 1111 1111 1111'],
  ['iban', 'GB82WEST12345698765432'],
  ['ip', '203.0.113.77'],
  ['mac', '3c:5a:b4:01:9f:ee'],
  ['ssn', '536-22-8145'],
] as const;

/** Ways to write one character. */
const WRITTEN: Readonly<Record<string, (character: string) => string>> = {
  plain: (character) => character,
  'zero-width': (character) => `${character}\u200b`,
  'full-width': (character) =>
    character === ' ' ? '\u3000' : String.fromCharCode(character.charCodeAt(0) + 0xfee0),
  entity: (character) => `&#${character.charCodeAt(0)};`,
  'hexadecimal entity': (character) => `&#x${character.charCodeAt(0).toString(16)};`,
  percent: (character) => `%${character.charCodeAt(0).toString(16)}`,
  'twice percent': (character) => `%25${character.charCodeAt(0).toString(16)}`,
  escape: (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  tag: (character) => String.fromCodePoint(0xe0000 + character.charCodeAt(0)),
};

/** The value, each of its characters written in some way; the last one is not followed by anything invisible. */
const disguised = (value: string, ways = Object.keys(WRITTEN)) =>
  fc
    .array(fc.constantFrom(...ways), { minLength: value.length, maxLength: value.length })
    .map((chosen) => [...value].map((character, i) => WRITTEN[chosen[i]!]!(character)).join(''))
    .map((written) => written.replace(/\u200b+$/, ''));

describe('disguised values', () => {
  it.each([...VALUES])('%s: found where it is written, in any mix of disguises', (kind, value) => {
    fc.assert(
      fc.property(disguised(value), (written) => {
        const given = `It is ${written}, I think.`;
        const [one, ...others] = findPii(given, 0).filter((finding) => finding.kind === kind);
        expect(others).toEqual([]);
        expect(given.slice(one?.start, one?.end)).toBe(written);
        expect(one?.value ?? written).toBe(value);
      }),
      { numRuns: 300 },
    );
  });

  it('a key', () => {
    fc.assert(
      fc.property(disguised(TOKEN), (written) => {
        const given = `Use ${written} for it.`;
        expect(findSecrets(given, 0).map(({ start, end }) => given.slice(start, end))).toContain(written);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['ann&commat;x&period;org', 'email'],
    ['ann&amp;#64;x.org', 'email'],
    ['ann＠x。org', 'email'],
    ['https://x.org/?to=ann%40x.org&n=1', 'email'],
    ['٤١١١ ١١١١ ١١١١ ١١١١', 'credit-card'],
    ['4111\u202f1111\u202f1111\u202f1111', 'credit-card'],
    ['536–22–8145', 'ssn'],
    ['https%3A%2F%2Fann%3Ahunter22%40x.org', 'url-credentials'],
    ['%EF%BC%94111 1111 1111 1111', 'credit-card'],
  ])('%s', (given, kind) => {
    expect(findPii(given, 0).map((finding) => finding.kind)).toEqual([kind]);
  });

  it('finds a password in an encoded address', () => {
    const given = 'postgres%3A%2F%2Fann%3Ahunter22%40db.x.org%2Fa';
    expect(findSecrets(given, 0)).toEqual([{ start: 23, end: 31, kind: 'connection-string' }]);
  });

  it.each([
    'A family 👨‍👩‍👧‍👦, a flag 🏴󠁧󠁢󠁥󠁮󠁧󠁿, a heart ❤️ and 100 % of 25%, 50%25.',
    'می‌خواهم کتاب‌ها را در سال ۲۰۲۴ بخوانم',
    '版本１．２．３，于２０２４年５月１日发布。下一版在六月。',
    'https://x.org/a%20b/%E4%BD%A0%E5%A5%BD?q=a%26b&amp;c=d',
    '&lt;b&gt;5 &amp; 6&lt;/b&gt; &nbsp; 12&#8211;14 March',
    'pages 1990–2000, 12 345 678 km, 10–12–2024',
    'order%20number%204111111111111111',
    'C:\\users\\x64 \\u00e9t\\u00e9 and \\x41',
  ])('leaves alone: %s', (given) => {
    expect([...findPii(given, 0), ...findSecrets(given, 0)]).toEqual([]);
  });

  it('keeps the place of each character', () => {
    fc.assert(
      fc.property(fc.array(disguised('ann@x.org 4111'), { maxLength: 4 }), (pieces) => {
        const written = pieces.join('é');
        const plain = readPlain(written);
        expect(plain.start(plain.text.length)).toBe(written.length);
        for (let i = 1; i < plain.text.length; i++)
          expect(plain.start(i)).toBeGreaterThanOrEqual(plain.end(i - 1));
      }),
    );
  });
});

/** A text, cut into pieces at these lengths. */
function cut(given: string, lengths: readonly number[]): string[] {
  const pieces: string[] = [];
  let rest = given;
  for (const length of lengths) {
    pieces.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  return [...pieces, rest];
}

async function answered(said: string, options: PiiOptions): Promise<string> {
  const agent = new Agent({ model: scriptedModel([said]), middleware: [pii(options)] });
  return (await agent.run('Well?')).text;
}

describe('guards', () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 60 });
  // As it is written, a value has to fit into the window.
  const short = disguised('ann@x.org').filter((written) => written.length <= 128);
  const filler = 'This is 100 % harmless – and it goes on, and on. '.repeat(3);

  it('cut it out of a stream, however it is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(short, pieces, fc.boolean(), async (written, lengths, late) => {
        const head = late ? filler : '';
        const model = scriptedModel([chunks(...cut(`${head}It is ${written}. ${filler}`, lengths))]);
        const session = new Agent({ model, middleware: [pii()] }).session('s');
        const { events, result } = await collect(session.stream('Well?', { runId: 'r' }));
        expect(result?.text).toBe(`${head}It is [email]. ${filler}`);
        const streamed = events.flatMap((event) =>
          event.type === 'message_update' && event.delta.type === 'text' ? [event.delta.text] : [],
        );
        expect(streamed.join('')).toBe(result?.text);
      }),
      { numRuns: 150 },
    );
  });

  it('cut a key out of a stream, however it is cut into pieces', async () => {
    const written = disguised(TOKEN, ['plain', 'zero-width', 'full-width']);
    await fc.assert(
      fc.asyncProperty(written, pieces, async (key, lengths) => {
        const model = scriptedModel([chunks(...cut(`${filler}Use ${key}. ${filler}`, lengths))]);
        const { result } = await collect(new Agent({ model, middleware: [secrets()] }).stream('Well?'));
        expect(result?.text).toBe(`${filler}Use [github-token]. ${filler}`);
      }),
      { numRuns: 60 },
    );
  });

  it('give tools the exact original text', async () => {
    const seen: unknown[] = [];
    const mail = tool({
      name: 'mail',
      description: 'Mails.',
      input: z.object({ link: z.string() }),
      execute: (args) => void seen.push(args),
    });
    const model = scriptedModel([
      ({ messages }) =>
        toolCalls({ name: 'mail', args: { link: /\S*<EMAIL_1>\S*/.exec(JSON.stringify(messages))![0] } }),
      text('Done.'),
    ]);
    const agent = new Agent({ model, tools: [mail], middleware: [pii({ strategy: 'tokenize' })] });
    await agent.run([{ type: 'text', text: 'Open https://x.org/?to=ann%2Bx%40x.org&n=1 now' }]);
    expect(JSON.stringify(model.requests)).not.toContain('ann');
    expect(seen).toEqual([{ link: 'https://x.org/?to=ann%2Bx%40x.org&n=1' }]);
  });

  it('mask and hash the decoded value, and let it pass if it is allowed', async () => {
    expect(await answered('ann%40x.org', { strategy: 'mask' })).toBe('a***@x.org');
    const [plain, other] = await Promise.all(
      ['ann@x.org', 'a\u200bnn＠x.org'].map((said) => answered(said, { strategy: 'hash', key: 'k' })),
    );
    expect(other).toBe(plain);
    expect(await answered('ann%40x.org', { allow: ['ann@x.org'] })).toBe('ann%40x.org');
  });
});
