/** Finds addresses in text, and the host each would be sent to. */
import { isWordCode, searchStart } from '../scan/finding.js';

export interface FoundHost {
  readonly start: number;
  readonly end: number;
  readonly kind: 'url' | 'host' | 'unreadable-url';
  /** As a browser reads it: lower case, punycode, IP addresses in their usual form. Empty if it cannot be read. */
  readonly host: string;
}

/** Letters of schemes, before `:`. */
const SCHEME = /[a-z][a-z0-9+.-]{1,20}$/i;
/** What ends an address in prose, Markdown and HTML. */
const ENDS = /[\s<>"'`|^{}]/g;

/** Browsers take a backslash for a slash, and skip tabs and line breaks inside. */
const SLASHES = /(?:[/\\]|&#x2f;|&#47;|%2f){2}/iy;

/** `whole`: the text is one argument of a tool, which may be a bare host. */
export function findHosts(text: string, from: number, whole: boolean): FoundHost[] {
  const found: FoundHost[] = [];
  let last = 0;
  for (let place = searchStart(from); place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (place < last) continue;
    const start =
      code === 58
        ? afterScheme(text, place)
        : code === 47 || code === 92
          ? withoutScheme(text, place)
          : code === 119 || code === 87
            ? www(text, place)
            : -1;
    if (start === -1) continue;
    const end = endOf(text, Math.max(place + 1, start));
    const address = text.slice(start, end);
    const host = hostOf(address);
    if (host === undefined) continue;
    found.push({ start, end, host, kind: host === '' ? 'unreadable-url' : 'url' });
    last = end;
  }
  const bare = whole && found.length === 0 ? bareHost(text) : undefined;
  if (bare !== undefined) found.push({ start: 0, end: text.length, kind: 'host', host: bare });
  return found;
}

/** `https://…`: where the scheme begins; -1 if this colon isn't part of one. */
function afterScheme(text: string, colon: number): number {
  SLASHES.lastIndex = colon + 1;
  if (!SLASHES.test(text)) return -1;
  const scheme = SCHEME.exec(text.slice(Math.max(0, colon - 21), colon))?.[0];
  return scheme === undefined ? -1 : colon - scheme.length;
}

/** `//host` in Markdown, HTML and JSON: browsers put the scheme before it. */
function withoutScheme(text: string, slash: number): number {
  const next = text.charCodeAt(slash + 1);
  if (next !== 47 && next !== 92) return -1;
  // In prose and code `//` is a comment. It is an address only where one is expected.
  const before = text.slice(Math.max(0, slash - LOOK_BACK), slash);
  if (OPENED.test(before)) return /[\w[]/.test(text[slash + 2] ?? '') ? slash : -1;
  // After a blank it may still be a comment, which hardly begins with a host.
  return OPENED_WITH_BLANKS.test(before) && HOST_AHEAD.test(text.slice(slash + 2, slash + 256)) ? slash : -1;
}

/** `(` and `<` of Markdown, `=` of HTML, quotes, and `[1]:` of a Markdown reference. */
const OPENED = /[("'=<]$|\]:$/;
const OPENED_WITH_BLANKS = /(?:[(=<]|\]:)\s+$/;
const HOST_AHEAD = /^(?:[^\s)>"'/\\]*\.[\p{L}\p{N}]|\[[0-9a-f:]|(?:0x)?\d{5})/iu;
/** Characters before `//` that are looked at: Markdown takes a line break and some blanks there. */
const LOOK_BACK = 16;

function www(text: string, at: number): number {
  if (isWordCode(text.charCodeAt(at - 1)) || text[at - 1] === '.' || text[at - 1] === '/') return -1;
  return /^www\./i.test(text.slice(at, at + 4)) && isWordCode(text.charCodeAt(at + 4)) ? at : -1;
}

function endOf(text: string, from: number): number {
  ENDS.lastIndex = from;
  let end = ENDS.exec(text)?.index ?? text.length;
  // Punctuation of the sentence, and a parenthesis that Markdown opened before the address.
  while (end > from && /[.,;:!?*_~\])]/.test(text[end - 1]!)) {
    const closing =
      text[end - 1] === ')' && count(text.slice(from, end), '(') >= count(text.slice(from, end), ')');
    if (closing) break;
    end--;
  }
  return end;
}

function count(text: string, sign: string): number {
  return text.split(sign).length - 1;
}

/** Schemes that lead to no other machine. */
const LOCAL = /^(?:file|data|blob|about|urn|tel|sms|mailto|javascript):/i;

/** The host of an address; '' if it cannot be read, undefined if it has none. */
function hostOf(address: string): string | undefined {
  if (LOCAL.test(address)) return undefined;
  const plain = address.replace(/&#x2f;|&#47;|%2f/gi, '/').replace(/&amp;/gi, '&');
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+.-]*):)?[/\\]*(.*)$/is.exec(plain) ?? [];
  if (rest === '') return undefined;
  try {
    // Every scheme is read as http, so that the host is spelled as browsers spell it.
    const { hostname } = new URL(`http://${rest}`);
    return hostname === '' ? undefined : hostname.replace(/\.$/, '');
  } catch {
    return scheme === undefined ? undefined : '';
  }
}

const HOST =
  /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.)+[\p{L}][\p{L}\p{N}-]{1,62}\.?(?::\d{1,5})?(?:\/\S*)?$/u;
const FILE_NAME =
  /\.(?:[cm]?[jt]sx?|json|md|txt|csv|ya?ml|toml|html?|css|png|jpe?g|gif|svg|pdf|log|py|rb|go|rs|java|sh|sql|xml|zip|gz|lock)$/i;
const ADDRESS =
  /^(?:0x[0-9a-f]+|\d{8,10}|(?:0x[0-9a-f]{1,2}|0?\d{1,3})(?:\.(?:0x[0-9a-f]{1,2}|0?\d{1,3})){3}|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:\/\S*)?$/i;

/** A text that is nothing but a host or an IP address, in whatever spelling. */
function bareHost(text: string): string | undefined {
  const plain = text.trim();
  if (plain.length > 2048 || (FILE_NAME.test(plain) && !plain.includes('/'))) return undefined;
  // A lone number is an address only for a browser; a number with dots or a prefix is one for everybody.
  if (!HOST.test(plain) && !(ADDRESS.test(plain) && !/^\d+$/.test(plain))) return undefined;
  return hostOf(`//${plain}`) || undefined;
}
