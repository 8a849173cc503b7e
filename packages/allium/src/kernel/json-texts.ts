/** The texts inside a JSON value — keys, strings and numbers, at any depth — taken out and put back. */

/** Every text of the value, in order. */
export function textsIn(value: unknown, out: string[] = []): string[] {
  if (typeof value === 'string') out.push(value);
  else if (typeof value === 'number') out.push(String(value));
  else if (Array.isArray(value)) for (const item of value) textsIn(item, out);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      out.push(key);
      textsIn(item, out);
    }
  }
  return out;
}

/** The same value with its texts replaced, in the same order. Whatever did not change is kept as it was. */
export function withTexts(value: unknown, texts: readonly string[]): unknown {
  let i = 0;
  const walk = (item: unknown): unknown => {
    if (typeof item === 'string') return texts[i++] ?? '';
    if (typeof item === 'number') {
      const text = texts[i++] ?? '';
      return text === String(item) ? item : text;
    }
    if (Array.isArray(item)) return item.map(walk);
    if (typeof item !== 'object' || item === null) return item;
    const made = new Map<string, unknown>();
    for (const inner of Object.values(item)) {
      const key = unused(texts[i++] ?? '', made);
      made.set(key, walk(inner));
    }
    return Object.fromEntries(made);
  };
  return walk(value);
}

/** Two keys may have become the same: neither value may be lost for it. */
function unused(key: string, made: ReadonlyMap<string, unknown>): string {
  let name = key;
  for (let n = made.has(key) ? made.size + 1 : 0; made.has(name); n++) name = `${key}#${n}`;
  return name;
}

const STRING_TOKEN = /"(?:[^"\\]|\\.)*"/g;

/** Does valid JSON text hold more than its parsed value does? Of keys that repeat only the last one is left. */
export function hidesText(json: string, value: unknown): boolean {
  return (json.match(STRING_TOKEN)?.length ?? 0) !== countStrings(value);
}

function countStrings(value: unknown): number {
  if (typeof value === 'string') return 1;
  if (typeof value !== 'object' || value === null) return 0;
  let count = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const item of Object.values(value)) count += countStrings(item);
  return count;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Valid JSON with every number that would lose digits as text: parsed, it says all that the JSON said. */
export function withoutRounding(json: string): string {
  return json.replace(TOKEN, (token) =>
    token.startsWith('"') || digits(token) === digits(String(Number(token))) ? token : `"${token}"`,
  );
}

/** The digits that make the value: `1.0` and `1e3` have those of `1`. */
function digits(number: string): string {
  return number.replace(/e.*$|[-.]/gi, '').replace(/^0+|0+$/g, '');
}

/** Valid JSON with numbers as guards are shown them: written with an exponent they may spell something else. */
function withPlainNumbers(json: string): string {
  return json.replace(TOKEN, (token) => {
    if (token.startsWith('"')) return token;
    const plain = String(Number(token));
    return /e/i.test(token + plain) && digits(token) === digits(plain) ? plain : token;
  });
}

/**
 * Arguments of a call as guards judge them, and the text to keep if they let them pass: what nobody could judge is not
 * kept. Undefined for text that is not JSON.
 */
export function readArguments(given: string): { readonly args: unknown; readonly kept: string } | undefined {
  try {
    JSON.parse(given || '{}');
  } catch {
    return undefined;
  }
  const exact = withoutRounding(given || '{}');
  const args: unknown = JSON.parse(exact);
  return { args, kept: hidesText(exact, args) ? JSON.stringify(args) : withPlainNumbers(given) };
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;
const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** Text that was meant to be JSON, as a reader would read it: what is escaped in it is no secret to anyone. */
export function unescaped(text: string): string {
  return text.replace(ESCAPE, (_, code?: string, plain?: string) =>
    code === undefined ? (ESCAPED[plain!] ?? plain!) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** Anything as the JSON it would be stored as; undefined when it cannot be stored. */
export function asJson(value: unknown, replacer?: (key: string, value: unknown) => unknown): unknown {
  try {
    const text = JSON.stringify(value, replacer);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
