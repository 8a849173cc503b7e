/** Colours, where they are wanted: on a terminal, unless NO_COLOR is set. */

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

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
    on ? (text: string) => `\u001b[${open}m${text}\u001b[${close}m` : (text: string) => text;
  return Object.fromEntries(Object.entries(CODES).map(([name, pair]) => [name, paint(pair)])) as Style;
}
