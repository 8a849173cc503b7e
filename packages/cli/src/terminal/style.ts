/**
 * Colours, if they are wanted: on a terminal, unless NO_COLOR is set. Also makes every text safe on its way there.
 */
import { terminalText } from 'allium';

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

/**
 * Stands for the beginning of an escape sequence. Nobody can guess it, so no text from elsewhere can bring a style.
 */
const MARK = `\u0000${crypto.randomUUID()}:`;

export type Style = Readonly<Record<keyof typeof CODES, (text: string) => string>>;

/** https://no-color.org: set and not empty means none. FORCE_COLOR overrules the terminal, not NO_COLOR. */
export function wantsColour(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  return stream.isTTY === true && env.TERM !== 'dumb';
}

export function styleFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Style {
  const on = wantsColour(stream, env);
  const paint = ([open, close]: readonly [number, number]) =>
    on ? (text: string) => `${MARK}${open}m${text}${MARK}${close}m` : (text: string) => text;
  return Object.fromEntries(Object.entries(CODES).map(([name, pair]) => [name, paint(pair)])) as Style;
}

/**
 * The text as a terminal gets it: our own styles as escape sequences, and nothing else that could control it or hide
 * in it. Every text of the command line goes through here.
 */
export function onScreen(text: string): string {
  const [first = '', ...styled] = text.split(MARK);
  const rest = styled.map((part) => {
    const end = part.indexOf('m') + 1;
    return `\u001b[${part.slice(0, end)}${terminalText(part.slice(end))}`;
  });
  return [terminalText(first), ...rest].join('');
}
