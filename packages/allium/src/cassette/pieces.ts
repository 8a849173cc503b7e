/** Streams as they are stored: text in one piece, with the places where it was cut. */

import type { AssistantContent, ModelPart } from '../index.js';
import type { ResponseAssembler } from '../kit/index.js';
import type { Cleaner } from './clean.js';
import type { StoredPart } from './format.js';

/** A part of a stream and the block it went into. */
export interface HeardPart {
  readonly part: ModelPart;
  readonly block: number;
}

type Block = ResponseAssembler['content'][number];
type Fields = Record<string, unknown> & { readonly type: string };

/**
 * Parts as they are stored. `final` is what the blocks became, after guards. If it differs from what was heard, it
 * counts, and the pieces are fitted to it.
 */
export function storedParts(
  heard: readonly HeardPart[],
  final: readonly (Block | AssistantContent)[],
  clean: Cleaner,
): readonly StoredPart[] {
  const texts = finalTexts(heard, final, clean);
  const stored: { fields: Fields; pieces: string[]; block: number }[] = [];
  const begun = new Set<number>();
  for (const [index, { part, block }] of heard.entries()) {
    const fields = fieldsOf(part, final[block]!, clean);
    const text = texts[index];
    const last = stored.at(-1);
    const more = begun.has(block) && isBare(part, fields);
    begun.add(block);
    if (text === undefined) stored.push({ fields, pieces: [], block });
    // Nothing is left of this piece.
    else if (more && text === '' && textOf(part) !== '') continue;
    else if (more && last?.block === block && last.fields.block === fields.block) last.pieces.push(text);
    else stored.push({ fields, pieces: [text], block });
  }
  return stored.map(({ fields, pieces }) => joined(fields, pieces));
}

/** The stored parts, piece by piece. `restore` puts back what was removed for storing. */
export function* partsOfStored(stored: readonly StoredPart[], restore: Cleaner): Generator<ModelPart> {
  for (const { cuts = [], ...whole } of stored) {
    const field = textFieldOf(whole);
    if (field === undefined) {
      yield restore.value(whole) as unknown as ModelPart;
      continue;
    }
    const { [field]: text, ...fields } = whole as Fields;
    const [first = '', ...rest] = pieces(String(text), cuts);
    const restored = restore.value(fields);
    yield { ...restored, [field]: restore.text(first) } as unknown as ModelPart;
    const more = followers(restored);
    for (const piece of rest) yield { ...more, [field]: restore.text(piece) } as unknown as ModelPart;
  }
}

/** Fits pieces to a text that was changed: cuts outside the change stay, and the change is one piece. */
export function refitted(given: readonly string[], to: string): readonly string[] {
  const from = given.join('');
  if (from === to) return given;
  let start = 0;
  while (start < from.length && start < to.length && from[start] === to[start]) start++;
  let end = 0;
  const most = Math.min(from.length, to.length) - start;
  while (end < most && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  let at = 0;
  let done = 0;
  return given.map((piece, index) => {
    at += piece.length;
    const moved = at <= start ? at : Math.max(at, from.length - end) + to.length - from.length;
    const cut = index === given.length - 1 ? to.length : moved;
    const made = to.slice(done, cut);
    done = cut;
    return made;
  });
}

function finalTexts(
  heard: readonly HeardPart[],
  final: readonly (Block | AssistantContent)[],
  clean: Cleaner,
): (string | undefined)[] {
  const texts: (string | undefined)[] = heard.map(() => undefined);
  for (const [block, made] of final.entries()) {
    const field = textFieldOf(made);
    if (field === undefined) continue;
    const own = [...heard.keys()].filter((index) => heard[index]!.block === block);
    const text = String((made as unknown as Fields)[field] ?? '');
    const cleaned = field === 'text' ? clean.text(text) : clean.json(text);
    const fitted = refitted(
      own.map((index) => textOf(heard[index]!.part) ?? ''),
      cleaned,
    );
    for (const [i, index] of own.entries()) texts[index] = fitted[i]!;
  }
  return texts;
}

/**
 * The fields of a part besides its text. A signature is for the original text, so it is left out if guards changed
 * that.
 */
function fieldsOf(part: ModelPart, final: Block | AssistantContent, clean: Cleaner): Fields {
  const field = textFieldOf(part);
  if (field === undefined) return clean.value({ ...final }) as Fields;
  const { [field]: _, signature, ...fields } = part as unknown as Fields;
  const { signature: kept, redacted } = final as { signature?: string; redacted?: boolean };
  return clean.value({
    ...fields,
    ...(signature !== undefined && kept !== undefined && { signature }),
    ...(redacted && { redacted }),
  }) as Fields;
}

/** Is it only more text for an existing block? */
function isBare(part: ModelPart, fields: Fields): boolean {
  if (part.type === 'tool-call-delta') return true;
  if (part.type !== 'text' && part.type !== 'thinking') return false;
  return fields.signature === undefined && fields.metadata === undefined;
}

function joined(fields: Fields, list: readonly string[]): StoredPart {
  const field = textFieldOf(fields);
  if (field === undefined) return fields;
  const cuts: number[] = [];
  let length = 0;
  for (const piece of list.slice(0, -1)) {
    length += piece.length;
    cuts.push(length);
  }
  return { ...fields, [field]: list.join(''), ...(cuts.length > 0 && { cuts }) };
}

function pieces(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts, text.length];
  return places.slice(1).map((place, i) => text.slice(places[i], place));
}

/** What the pieces after the first repeat. */
function followers({ type, id, block, redacted }: Fields): Fields {
  if (type !== 'text' && type !== 'thinking') return { type: 'tool-call-delta', id };
  return { type, ...(block !== undefined && { block }), ...(redacted !== undefined && { redacted }) };
}

/** Which field of a part is text that may come in pieces. */
export function textFieldOf({ type }: { readonly type: string }): 'text' | 'arguments' | undefined {
  if (type === 'text' || type === 'thinking') return 'text';
  return type === 'tool-call' || type === 'tool-call-delta' ? 'arguments' : undefined;
}

function textOf(part: ModelPart): string | undefined {
  const field = textFieldOf(part);
  return field && String((part as unknown as Fields)[field]);
}
