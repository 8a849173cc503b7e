/** Texts of traces as the page gets them: never longer than a screen needs, and whole on request. */

/** Characters of a text that are sent at first. */
const SHOWN = 2000;

/** The beginning of a text, and its length if something was left out. Never cuts a surrogate pair in two. */
export function cutText(text: string, most: number = SHOWN): { text: string; cut?: number } {
  if (text.length <= most) return { text };
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? most - 1 : most;
  return { text: text.slice(0, end), cut: text.length };
}

/** A text as one short line. Looks at its beginning only: it may have megabytes. */
export function oneLine(text: string, most = 160): string {
  return cutText(
    text
      .slice(0, most * 4)
      .replace(/\s+/g, ' ')
      .trim(),
    most,
  ).text;
}

export function sizeOf(base64: string): string {
  const bytes = Math.round((base64.length * 3) / 4);
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
}
