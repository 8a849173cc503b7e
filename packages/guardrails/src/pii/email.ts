/** Finds e-mail addresses. */
import { type Finding, isWordCode, searchStart } from '../scan/finding.js';

/** RFC 5321: the longest part before the `@`, and the longest label and domain behind it. */
const LONGEST_LOCAL = 64;
const LONGEST_DOMAIN = 253;

/** Endings of file names that stand behind an `@` in code and pages (`logo@2x.png`) and are no top-level domains. */
const FILES = new Set(
  'png jpg jpeg gif svg webp avif ico bmp js mjs cjs ts mts cts jsx tsx css scss less html htm json yaml yml toml xml txt csv tsv pdf doc docx xls xlsx ppt pptx exe dll bin gz tgz tar rar iso dmg deb rpm jar war class java cpp hpp lock log map min bak tmp local localhost internal lan svc cluster test invalid'.split(
    ' ',
  ),
);

export function findEmails(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  for (let at = text.indexOf('@', searchStart(from)); at !== -1; at = text.indexOf('@', at + 1)) {
    const start = localStart(text, at);
    if (start === -1) continue;
    const end = domainEnd(text, at + 1);
    if (end === -1 || isSomethingElse(text, start, at, end)) continue;
    found.push({ start, end, kind: 'email' });
  }
  return found;
}

/** Where the part before the `@` begins; -1 if there is none. */
function localStart(text: string, at: number): number {
  if (text.charCodeAt(at - 1) === 34) {
    const open = text.lastIndexOf('"', at - 2);
    // A quoted part such as "john doe"@x.org; a quote of a sentence that ends there has no letter before it.
    return open !== -1 && at - open <= LONGEST_LOCAL && !/[\r\n]/.test(text.slice(open, at)) ? open : -1;
  }
  const lowest = Math.max(0, at - LONGEST_LOCAL);
  let start = at;
  while (start > lowest && isLocal(text.charCodeAt(start - 1))) start--;
  // Punctuation that only leads up to the address is not part of it: `(ann@x.org`, `'ann@x.org`, `mailto:…`.
  while (start < at && isPunctuation(text.charCodeAt(start))) start++;
  start += QUERY.exec(text.slice(start, at))?.[0].length ?? 0;
  if (start === at || text.charCodeAt(at - 1) === 46) return -1;
  return start;
}

/** `a=1&to=` in a query or a form before `ann@x.org`. */
const QUERY = /^(?:[\w.-]{1,40}=[^&]{0,40}&)*[\w.-]{1,24}=(?!.*=)/;

/** Where the domain ends; -1 if it isn't a domain. */
function domainEnd(text: string, start: number): number {
  const highest = Math.min(text.length, start + LONGEST_DOMAIN);
  let end = start;
  let dot = -1;
  let label = start;
  for (; end < highest; end++) {
    const code = text.charCodeAt(end);
    if (code === 46) {
      if (end === label || text.charCodeAt(end - 1) === 45) break;
      dot = end;
      label = end + 1;
    } else if (!isDomain(code) || (code === 45 && end === label)) break;
  }
  // A full stop or a hyphen at the end belongs to the sentence.
  while (end > start && (text.charCodeAt(end - 1) === 46 || text.charCodeAt(end - 1) === 45)) end--;
  if (dot === end) dot = text.lastIndexOf('.', end - 1);
  if (dot <= start || end - dot < 3) return -1;
  return isTopLevel(text.slice(dot + 1, end)) ? end : -1;
}

function isTopLevel(label: string): boolean {
  if (/[0-9_]/.test(label) && !/^xn--/i.test(label)) return false;
  return label.length <= 24 && !FILES.has(label.toLowerCase());
}

/** What the strategy `mask` leaves: nobody's address any more. */
const MASKED = /^[^*]?\*{3}$/;

/** `git@host:path` and `user@host` inside an address of the web are places, not mailboxes. */
function isSomethingElse(text: string, start: number, at: number, end: number): boolean {
  const local = text.slice(start, at);
  const next = text.charCodeAt(end);
  if (MASKED.test(local)) return true;
  if (next === 58 && /^(?:git|hg|svn|ssh|gitea|gitlab|root|deploy)$/i.test(local)) return true;
  if (next === 64) return true;
  const head = text.slice(Math.max(0, start - 64), start);
  return /:\/\/[^\s/@]*$/.test(head) || /:\/\/$/.test(head);
}

function isLocal(code: number): boolean {
  return isWordCode(code) || LOCAL_SIGNS.has(code);
}

const LOCAL_SIGNS = new Set([...".!#$%&'*+-=^`{|}~"].map((sign) => sign.charCodeAt(0)));

/** Signs that an address does not begin with, though the standard would let most of them. */
function isPunctuation(code: number): boolean {
  return LOCAL_SIGNS.has(code) && code !== 95;
}

function isDomain(code: number): boolean {
  return code === 45 || (isWordCode(code) && code !== 95);
}
