/** Readers join the blocks of a message, so a match that is split over them is found as it is in one. */
import {
  Agent,
  defineMiddleware,
  type GuardPoint,
  type Middleware,
  type ModelPart,
  memoryStore,
  textOf,
  tool,
  toolResult,
  window,
} from 'allium';
import { chunks, collect, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (pattern: RegExp) => (given: string) =>
  [...given.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));

/** No match is longer than the windows below. */
const MAIL = /[a-z]{1,6}@[a-z]{1,3}\.org/g;
const ONE = new RegExp(MAIL.source);

function redacting(on: GuardPoint[], more: Partial<NonNullable<Middleware['guard']>> = {}): Middleware {
  return defineMiddleware({
    name: 'mail',
    guard: { on, find: find(MAIL), replacement: '[mail]', ...more },
  });
}

type Block = 'text' | 'thinking' | 'call' | 'file';
type Piece = { readonly kind: Block; readonly text: string };

/** A response that has the text split over blocks, and each block over chunks. */
function partsOf(pieces: readonly Piece[], size: number, keyed: boolean): ModelPart[] {
  return pieces.flatMap(({ kind, text: given }, i): ModelPart[] => {
    if (kind === 'call') return [{ type: 'tool-call', id: `c${i}`, name: 'look', arguments: '{}' }];
    if (kind === 'file') return [{ type: 'file', data: 'AA==', mimeType: 'image/png' }];
    const parts: ModelPart[] = [];
    for (let at = 0; at < given.length || at === 0; at += size)
      parts.push({ type: kind, text: given.slice(at, at + size), ...(keyed && { block: i }) });
    return parts;
  });
}

/** Parts of keyed blocks in any order that keeps each block in its own. */
function interleaved(parts: readonly ModelPart[], order: readonly number[]): ModelPart[] {
  const queues = new Map<unknown, ModelPart[]>();
  const keyOf = (part: ModelPart) => ('block' in part ? part.block : part);
  for (const part of parts) queues.set(keyOf(part), [...(queues.get(keyOf(part)) ?? []), part]);
  const keys = [...queues.keys()];
  const out: ModelPart[] = [];
  // Each block begins in its turn.
  for (const key of keys) out.push(queues.get(key)!.shift()!);
  for (let n = 0; [...queues.values()].some((queue) => queue.length > 0); n++) {
    const open = keys.filter((key) => queues.get(key)!.length > 0);
    out.push(queues.get(open[order[n % order.length]! % open.length])!.shift()!);
  }
  return out;
}

/** The text of the first line is split where it says so. */
const splits = fc.record({
  words: fc.array(fc.constantFrom('ann@', 'x.org', 'ann', '@', 'x', '.org', ' ', 'say it ', '\n', '😀'), {
    minLength: 1,
    maxLength: 25,
  }),
  cuts: fc.array(fc.nat(120), { maxLength: 6 }),
  between: fc.array(fc.constantFrom<Block | undefined>('thinking', 'call', 'file', undefined, undefined), {
    minLength: 1,
    maxLength: 4,
  }),
  size: fc.integer({ min: 1, max: 12 }),
  keyed: fc.boolean(),
  order: fc.array(fc.nat(10), { minLength: 1, maxLength: 8 }),
  hold: fc.constantFrom<'full' | number>('full', 24, 40),
});

function piecesOf(whole: string, cuts: readonly number[], between: readonly (Block | undefined)[]): Piece[] {
  const places = [...new Set(cuts.map((cut) => Math.min(cut, whole.length)))].sort((a, b) => a - b);
  return [0, ...places].flatMap((start, i): Piece[] => {
    const piece: Piece = { kind: 'text', text: whole.slice(start, places[i] ?? whole.length) };
    const kind = between[i % between.length];
    return i === 0 || kind === undefined ? [piece] : [{ kind, text: 'Hm.' }, piece];
  });
}

const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });

describe('a match that is split over blocks', () => {
  it('is cut out of a response for any split, chunking and order, everywhere', async () => {
    await fc.assert(
      fc.asyncProperty(splits, async ({ words, cuts, between, size, keyed, order, hold }) => {
        const whole = words.join('');
        const pieces = piecesOf(whole, cuts, between);
        const parts = partsOf(pieces, size, keyed);
        const store = memoryStore();
        const calls = pieces.some(({ kind }) => kind === 'call');
        const model = scriptedModel([
          chunks(...(keyed ? interleaved(parts, order) : parts)),
          ...(calls ? [text('done')] : []),
          text('next'),
        ]);
        const guard = redacting(['output'], { hold: hold === 'full' ? 'full' : window(hold) });
        const agent = new Agent({ model, store, tools: [look], middleware: [guard] });
        const session = agent.session('s');
        const { events, result } = await collect(session.stream('go'));
        // Of each block alone as well: what the whole does not match may be one there.
        const wanted = whole.replace(MAIL, '[mail]');
        const alone = pieces.some(({ kind, text: given }) => kind === 'text' && ONE.test(given));
        const message = result!.messages.find(({ role }) => role === 'assistant')!;
        expect(textOf(message)).not.toMatch(ONE);
        if (!alone) expect(textOf(message)).toBe(wanted);
        const shown = new Map<number, string>();
        for (const event of events)
          if (
            event.type === 'message_update' &&
            event.messageId === message.id &&
            event.delta.type === 'text'
          )
            shown.set(event.delta.block, (shown.get(event.delta.block) ?? '') + event.delta.text);
        const live = [...shown.entries()].sort(([a], [b]) => a - b).map(([, given]) => given);
        expect(live.join('')).toBe(textOf(message));
        const [entry] = store
          .read('s', 1)
          .filter((one) => one.type === 'message' && one.message.id === message.id);
        expect(textOf((entry as { message: typeof message }).message)).toBe(textOf(message));
        await session.run('more');
        const sent = model.requests.at(-1)!.messages.find(({ id }) => id === message.id)!;
        expect(textOf(sent)).toBe(textOf(message));
      }),
      { numRuns: 150 },
    );
  });

  it.each(['input', 'request'] as const)('is cut out of user input at %s', async (point) => {
    const model = scriptedModel([text('ok')]);
    const agent = new Agent({ model, middleware: [redacting([point])] });
    await agent.run([
      { type: 'text', text: 'I am ann@' },
      { type: 'image', data: 'AA==', mimeType: 'image/png' },
      { type: 'text', text: 'x.org, hello' },
    ]);
    const [sent] = model.requests[0]!.messages;
    expect(sent!.content.map((part) => (part.type === 'text' ? part.text : part.type))).toEqual([
      'I am [mail]',
      'image',
      ', hello',
    ]);
  });

  it('is cut out of the result of a tool, and of content in its details', async () => {
    const content = [
      { type: 'text' as const, text: 'ann@' },
      { type: 'text' as const, text: 'x.org' },
    ];
    const fetch = tool({
      name: 'fetch',
      description: '',
      input: z.object({}),
      execute: () => toolResult({ content, details: { raw: content, apart: ['ann@', 'x.org'] } }),
    });
    const model = scriptedModel([toolCalls({ name: 'fetch', args: {} }), text('ok')]);
    const agent = new Agent({ model, tools: [fetch], middleware: [redacting(['tool-result'])] });
    const { messages } = await agent.run('go');
    const result = messages.find(({ role }) => role === 'tool')!;
    expect(textOf(result)).toBe('[mail]');
    expect(result).toMatchObject({
      details: { raw: [{ text: '[mail]' }, { text: '' }], apart: ['ann@', 'x.org'] },
    });
  });

  it('refuses a response with a guard that blocks, and shows a judge the text as it reads', async () => {
    const parts = chunks(
      { type: 'text', text: 'ann@' },
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'x.org' },
    );
    const blocked = new Agent({
      model: scriptedModel([parts]),
      middleware: [redacting(['output'], { action: 'block', hold: window(20) })],
    });
    expect(await blocked.run('go')).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' } });
    const seen: string[] = [];
    const judge = ({ text: given }: { text: string }) => void seen.push(given);
    const judged = new Agent({
      model: scriptedModel([parts]),
      middleware: [{ name: 'judge', guard: { on: ['output'], judge } }],
    });
    await judged.run('go');
    expect(seen).toEqual(['ann@x.org']);
  });

  it('is found in thinking, which then is not sent back', async () => {
    const parts = chunks(
      { type: 'thinking', text: 'It is ann@', signature: 's1' },
      { type: 'text', text: 'Wait.' },
      { type: 'thinking', text: 'x.org', signature: 's2' },
    );
    const agent = new Agent({
      model: scriptedModel([parts]),
      middleware: [redacting(['thinking'], { hold: window(20) })],
    });
    const { messages } = await agent.run('go');
    expect(messages[1]!.content).toEqual([
      { type: 'thinking', text: 'It is [mail]', redacted: true },
      { type: 'text', text: 'Wait.' },
      { type: 'thinking', text: '', redacted: true },
    ]);
  });

  it('is only reported by a guard that warns: the blocks stay as they are', async () => {
    const parts = chunks({ type: 'text', text: 'ann@', block: 1 }, { type: 'text', text: 'x.org', block: 2 });
    for (const hold of ['full', window(20)] as const) {
      const agent = new Agent({
        model: scriptedModel([parts]),
        middleware: [redacting(['output'], { action: 'warn', hold })],
      });
      const { messages } = await agent.run('go');
      expect(messages[1]!.content).toMatchObject([{ text: 'ann@' }, { text: 'x.org' }]);
    }
  });
});

describe('a block that is a match by itself', () => {
  it('is cut out even if the joined text is no match, because it may be shown by itself', async () => {
    const card = defineMiddleware({
      name: 'card',
      guard: { on: ['input', 'output'], find: find(/\b\d{16}\b/g), hold: window(20), replacement: '[card]' },
    });
    const parts = chunks(
      { type: 'text', text: '4111111111111111', block: 1 },
      { type: 'text', text: '2 apples', block: 2 },
    );
    const model = scriptedModel([parts]);
    const agent = new Agent({ model, middleware: [card] });
    const { messages } = await agent.run([
      { type: 'text', text: '4111111111111111' },
      { type: 'text', text: '5500000000000004' },
    ]);
    expect(messages.map(textOf)).toEqual(['[card][card]', '[card]2 apples']);
  });
});

describe('a block whose end is known', () => {
  it('does not hold back the text of the next one', async () => {
    const long = 'word '.repeat(40);
    const model = scriptedModel([
      chunks(
        { type: 'text', text: 'First. ', block: 1 },
        { type: 'text', text: '', block: 1, end: true },
        { type: 'text', text: long, block: 2 },
        { type: 'thinking', text: 'Hm.' },
      ),
    ]);
    const agent = new Agent({ model, middleware: [redacting(['output'], { hold: window(20) })] });
    const { events } = await collect(agent.stream('go'));
    const deltas = events.flatMap((event) => (event.type === 'message_update' ? [event.delta] : []));
    const thought = deltas.findIndex(({ type }) => type === 'thinking');
    expect(deltas.slice(0, thought).some(({ type, block }) => type === 'text' && block === 1)).toBe(true);
  });
});
