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

/** Browsers take a backslash for a slash; Markdown and HTML read entities. */
const SLASH = '(?:[/\\\\]|&#0*47;?|&#x0*2f;?|&#0*92;?|&#x0*5c;?|&b?sol;|%2f)';
const SLASHES = new RegExp(`${SLASH}{2}`, 'iy');
/** A colon, and line breaks behind it: browsers skip them inside an attribute. */
const COLON = /(?::|&colon;|&#0*58;?|&#x0*3a;?)[\t\r\n]{0,4}/iy;
/** With these, browsers need no slashes. */
const SPECIAL = /^(?:https?|wss?|ftp)$/i;
const FEW_SLASHES = new RegExp(`${SLASH}?`, 'iy');

/** `whole`: the text is one argument of a tool, which may be a bare host. */
export function findHosts(text: string, from: number, whole: boolean): FoundHost[] {
  const found: FoundHost[] = [];
  let last = 0;
  for (let place = searchStart(from); place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (place < last) continue;
    const begun =
      code === 58 || code === 38
        ? (afterScheme(text, place) ?? withoutScheme(text, place))
        : code === 47 || code === 92
          ? withoutScheme(text, place)
          : code === 119 || code === 87
            ? www(text, place)
            : undefined;
    if (!begun) continue;
    const [start, rest] = begun;
    const end = endOf(text, start, rest);
    const host = hostOf(text.slice(start, end).replace(/[\t\r\n]/g, ''));
    if (host === undefined) continue;
    found.push({ start, end, host, kind: host === '' ? 'unreadable-url' : 'url' });
    last = end;
  }
  const bare = whole && found.length === 0 ? bareHost(text) : undefined;
  if (bare !== undefined) found.push({ start: 0, end: text.length, kind: 'host', host: bare });
  return found;
}

/** Where an address begins, and where what follows its slashes does. */
type Begun = readonly [start: number, rest: number];

/** `https://…`, or `https:host`, which browsers also read; nothing if this colon isn't part of an address. */
function afterScheme(text: string, at: number): Begun | undefined {
  COLON.lastIndex = at;
  if (!COLON.test(text)) return undefined;
  const after = COLON.lastIndex;
  const scheme = SCHEME.exec(text.slice(Math.max(0, at - 21), at))?.[0];
  if (scheme === undefined) return undefined;
  SLASHES.lastIndex = after;
  const hasSlashes = SLASHES.test(text);
  if (hasSlashes && after === at + 1) return [at - scheme.length, SLASHES.lastIndex];
  FEW_SLASHES.lastIndex = after;
  FEW_SLASHES.test(text);
  const rest = hasSlashes ? SLASHES.lastIndex : FEW_SLASHES.lastIndex;
  if (!hasSlashes && !SPECIAL.test(scheme)) return undefined;
  return HOST_AHEAD.test(text.slice(rest, rest + 254)) ? [at - scheme.length, rest] : undefined;
}

/** `//host` in Markdown, HTML and JSON: browsers put the scheme before it. */
function withoutScheme(text: string, slash: number): Begun | undefined {
  SLASHES.lastIndex = slash;
  if (!SLASHES.test(text)) return undefined;
  const rest = SLASHES.lastIndex;
  // In prose and code `//` is a comment. It is an address only where one is expected.
  const before = text.slice(Math.max(0, slash - LOOK_BACK), slash);
  if (OPENED.test(before)) return /[\w[]/.test(text[rest] ?? '') ? [slash, rest] : undefined;
  // After a blank it may still be a comment, which hardly begins with a host.
  return OPENED_WITH_BLANKS.test(before) && HOST_AHEAD.test(text.slice(rest, rest + 254))
    ? [slash, rest]
    : undefined;
}

/** `(` and `<` of Markdown, `=` of HTML, quotes, and `[1]:` of a Markdown reference. */
const OPENED = /[("'=<]$|\]:$/;
const OPENED_WITH_BLANKS = /(?:[(=<]|\]:)\s+$/;
const HOST_AHEAD = /^(?:[^\s)>"'/\\]*\.[\p{L}\p{N}]|\[[0-9a-f:]|(?:0x)?\d{5})/iu;
/** Characters before `//` that are looked at: Markdown takes a line break and some blanks there. */
const LOOK_BACK = 16;

function www(text: string, at: number): Begun | undefined {
  if (isWordCode(text.charCodeAt(at - 1)) || text[at - 1] === '.' || text[at - 1] === '/') return undefined;
  return /^www\./i.test(text.slice(at, at + 4)) && isWordCode(text.charCodeAt(at + 4)) ? [at, at] : undefined;
}

/** Longer attributes aren't addresses. */
const ATTRIBUTE = 2048;

function endOf(text: string, start: number, from: number): number {
  ENDS.lastIndex = from;
  let end = ENDS.exec(text)?.index ?? text.length;
  // Inside an attribute browsers skip line breaks, and read on.
  const quote = text[start - 1];
  if ((quote === '"' || quote === "'") && /[\t\r\n]/.test(text[end] ?? '')) {
    const [inside] = /^[^"'<> ]*/.exec(text.slice(from, from + ATTRIBUTE))!;
    if (text[from + inside.length] === quote) return from + inside.length;
  }
  // Punctuation of the sentence, and a parenthesis that Markdown opened before the address.
  let open = 0;
  for (let at = from; at < end; at++) open += text[at] === '(' ? 1 : text[at] === ')' ? -1 : 0;
  while (end > from && /[.,;:!?*_~\])]/.test(text[end - 1]!)) {
    if (text[end - 1] === ')') {
      if (open >= 0) break;
      open++;
    }
    end--;
  }
  return end;
}

/** Schemes that lead to no other machine. */
const LOCAL = /^(?:file|data|blob|about|urn|tel|sms|mailto|javascript):/i;

/** A slash, or a colon, by another name. */
const ENTITY = /(&#0*47;?|&#x0*2f;?|&#0*92;?|&#x0*5c;?|&b?sol;|%2f)|&colon;|&#0*58;?|&#x0*3a;?/gi;

/** The host of an address; '' if it cannot be read, undefined if it has none. */
function hostOf(address: string): string | undefined {
  if (LOCAL.test(address)) return undefined;
  const plain = address
    .replace(ENTITY, (_, slash) => (slash === undefined ? ':' : '/'))
    .replace(/&amp;/gi, '&');
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
