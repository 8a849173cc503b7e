/** Finds IP and MAC addresses, web addresses, and passwords in them. */
import { isIPv6 } from 'node:net';
import { before, type Finding, isWordCode, searchStart } from '../scan/finding.js';

const IPV4 = /\d{1,3}(?:\.\d{1,3}){3}/y;

/** Words before dotted numbers that are versions, sections or the like. */
const NUMBERED =
  /(?:\bv|version|ver\.?|versions|release|released|build|firmware|driver|kernel|update|upgrade[ds]?|patch|rev(?:ision)?\.?|schema|section|chapter|clause|article|paragraph|appendix|table|figure|fig\.|annex|§|sdk|runtime|api|package|plugin|module|oid|level|heading|step|to|from|@|[a-z]\/|[=~^]|[<>]=)[\s:="'(-]{0,3}$/;
const ADDRESSED =
  /(?:\bip\b|addr|host|server|client|from|subnet|gateway|dns|ping|ssh|connect|peer|remote|proxy|http)/;

/** The IPv4 address that begins at a digit, or undefined. */
export function ipv4At(text: string, start: number): Finding | undefined {
  IPV4.lastIndex = start;
  const match = IPV4.exec(text);
  if (!match) return undefined;
  const end = IPV4.lastIndex;
  const octets = match[0].split('.');
  if (octets.some((octet) => Number(octet) > 255 || (octet.length > 1 && octet[0] === '0'))) return undefined;
  if (isWordCode(text.charCodeAt(start - 1)) || text[start - 1] === '.' || text[start - 1] === '-')
    return undefined;
  const next = text.charCodeAt(end);
  if (isWordCode(next) || next === 45 || (next === 46 && isWordCode(text.charCodeAt(end + 1))))
    return undefined;
  const [first, , , last] = octets.map(Number) as [number, number, number, number];
  // Of no machine in particular: this host, loopback, masks and broadcasts.
  if (
    first === 0 ||
    first === 127 ||
    first === 255 ||
    (last === 0 && octets.slice(1).every((o) => o === '0'))
  )
    return undefined;
  const head = before(text, start, 40);
  const said = NUMBERED.exec(head);
  if (said) {
    const word = said[0].trim();
    const mayBeAddress = /^(?:to|from|@|=)/.test(word);
    if (!mayBeAddress) return undefined;
    if (/version|release|upgrad|updat|build|firmware/.test(head)) return undefined;
    if (
      word.startsWith('@') &&
      /[a-z0-9_-]@$/.test(head) &&
      !/\b(?:ssh|scp|sftp|root|ubuntu|admin|user)\b/.test(head)
    )
      return undefined;
  }
  // Small numbers all along are more often a version or an outline than a machine.
  if (octets.every((octet) => octet.length === 1) && !ADDRESSED.test(head)) return undefined;
  if (
    /(?:version|versions|release|build|firmware|section|chapter)\b[^.;]{0,24}$/.test(head) &&
    !ADDRESSED.test(head)
  )
    return undefined;
  return { start, end, kind: 'ip' };
}

const HEX_GROUPS = /[0-9a-f:.]{2,45}/iy;

/** The IPv6 address around a colon, or undefined. */
export function ipv6Around(text: string, colon: number): Finding | undefined {
  let start = colon;
  while (start > 0 && colon - start < 5 && isHex(text.charCodeAt(start - 1))) start--;
  const previous = text.charCodeAt(start - 1);
  if (isWordCode(previous) || previous === 58 || previous === 46) return undefined;
  HEX_GROUPS.lastIndex = start;
  const match = HEX_GROUPS.exec(text);
  if (!match) return undefined;
  const address = match[0].replace(/[.:]+$/, (tail) => (tail.startsWith('::') ? '::' : ''));
  const end = start + address.length;
  if (isWordCode(text.charCodeAt(end)) || !isIPv6(address)) return undefined;
  const groups = address.split(':').filter((group) => group !== '');
  if (groups.length < 2 || address === '::1') return undefined;
  // `ab::cd` in code is two names; an address has a group with a digit and, shortened or not, more of them.
  if (address.includes('::') && groups.length < 3 && !/\d/.test(address)) return undefined;
  if (!/[a-f0-9]{3,4}/i.test(address)) return undefined;
  return { start, end, kind: 'ip' };
}

const MAC_PAIRS = /[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}/iy;
const MAC_DOTTED = /[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}/iy;

/** The MAC address whose first separator stands at `at`, or undefined. */
export function macAround(text: string, at: number): Finding | undefined {
  const dotted = text.charCodeAt(at) === 46;
  const start = at - (dotted ? 4 : 2);
  if (start < 0) return undefined;
  const previous = text.charCodeAt(start - 1);
  if (isWordCode(previous) || previous === 58 || previous === 45 || previous === 46) return undefined;
  const pattern = dotted ? MAC_DOTTED : MAC_PAIRS;
  pattern.lastIndex = start;
  const match = pattern.exec(text);
  if (!match) return undefined;
  const end = pattern.lastIndex;
  const next = text.charCodeAt(end);
  if (isWordCode(next)) return undefined;
  // More pairs follow: a fingerprint or a dump.
  if ((next === 58 || next === 45 || next === 46) && isHex(text.charCodeAt(end + 1))) return undefined;
  const pairs = match[0].replace(/[:.-]/g, '').toLowerCase();
  if (/^(?:0{12}|f{12})$/.test(pairs)) return undefined;
  // Without a letter it could be a date and a time, a score or a part number: some word must say what it is.
  if (
    /^\d+$/.test(pairs) &&
    (match[1] === '-' || dotted) &&
    !/mac|ether|hw|bssid|lladdr|device|physical|wlan|nic/.test(before(text, start, 40))
  )
    return undefined;
  return { start, end, kind: 'mac' };
}

const USERINFO = /:\/\/([^\s/?#@:<>"'`]{1,128}):([^\s/?#@<>"'`]{1,256})@(?=[\w[])/y;

/** Name and password in addresses such as `https://ann:secret@host`. The address around them may stay. */
export function findUrlCredentials(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  for (let at = text.indexOf('://', searchStart(from)); at !== -1; at = text.indexOf('://', at + 3)) {
    USERINFO.lastIndex = at;
    const match = USERINFO.exec(text);
    if (!match || isPlaceholder(match[2]!)) continue;
    found.push({ start: at + 3, end: at + match[0].length - 1, kind: 'url-credentials' });
  }
  return found;
}

const SCHEME = /(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,31}$/;
const WWW = /(?<![\w./@-])www\.(?=[\w-]+\.)/gi;
const ADDRESS = /[^\s<>"'`]+/y;

/** Whole addresses, such as `https://x.org/a?b=c` and `www.x.org/a`. */
export function findUrls(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  const start = searchStart(from);
  for (let at = text.indexOf('://', start); at !== -1; at = text.indexOf('://', at + 3)) {
    const scheme = SCHEME.exec(text.slice(Math.max(0, at - 33), at))?.[0];
    const end = scheme === undefined ? at : addressEnd(text, at + 3);
    if (end <= at + 3) continue;
    found.push({ start: at - scheme!.length, end, kind: 'url' });
    at = end - 3;
  }
  WWW.lastIndex = start;
  for (let match = WWW.exec(text); match; match = WWW.exec(text)) {
    const end = addressEnd(text, match.index);
    found.push({ start: match.index, end, kind: 'url' });
    WWW.lastIndex = end;
  }
  return found;
}

/** Where an address ends. The punctuation of the sentence around it isn't part of it. */
function addressEnd(text: string, start: number): number {
  ADDRESS.lastIndex = start;
  const address = ADDRESS.exec(text)?.[0] ?? '';
  const punctuation = address.includes('(') ? '.,;:!?*_~|]}' : '.,;:!?*_~|]})';
  let length = address.length;
  while (length > 0 && punctuation.includes(address[length - 1]!)) length--;
  return start + length;
}

/** `$DB_PASSWORD`, `<password>` and `****` aren't passwords; they stand for one. */
export function isPlaceholder(value: string): boolean {
  return (
    /^(?:\$[A-Z][A-Z0-9_]{2,}|\$[{(].*[)}]|%[A-Z0-9_]+%)$/.test(value) ||
    /^(?:\{\{?.*\}\}?|<.*>|\[.*\]|[*x•.…_-]+|pass(?:word|wd)?|secret|pwd|your[-_ ]?\w+|example|changeme|placeholder|redacted)$/i.test(
      value,
    )
  );
}

function isHex(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70);
}
