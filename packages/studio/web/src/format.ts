/** Numbers and times for people, always with their unit. */

const whole = new Intl.NumberFormat('en-US');
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export function count(n: number, one: string, many = `${one}s`): string {
  return `${whole.format(n)} ${n === 1 ? one : many}`;
}

export function tokens(n: number): string {
  return `${n < 10_000 ? whole.format(n) : compact.format(n)} tok`;
}

export function dollars(usd: number | undefined): string {
  if (usd === undefined) return 'no price';
  if (usd === 0) return '$0';
  if (usd < 0.0001) return '<$0.0001';
  return `$${usd.toFixed(usd < 0.1 ? 4 : 2)}`;
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 1) return ms === 0 ? '0 ms' : '<1 ms';
  // Rounded before it is split: otherwise there would be a minute of 60 s.
  const [seconds, minutes, hours] = [1000, 60_000, 3_600_000].map((unit) => Math.round(ms / unit)) as [
    number,
    number,
    number,
  ];
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** The time of today, or the day and the time. */
export function moment(at: number, now = Date.now()): string {
  const same = new Date(at).toDateString() === new Date(now).toDateString();
  return same ? time.format(at) : `${day.format(at)}, ${time.format(at).slice(0, 5)}`;
}

export function exactly(at: number): string {
  return full.format(at);
}

export function dayName(at: number): string {
  return day.format(at);
}

/** Control characters (ANSI among them) and marks that turn text around, as what they are. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is what it is for.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** The one way text of traces gets onto the page: as text, with nothing invisible in it. */
export function shown(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0);
    if (code === 0x7f) return '\u2421';
    return code < 0x20
      ? String.fromCharCode(0x2400 + code)
      : `\u2039U+${code.toString(16).toUpperCase().padStart(4, '0')}\u203a`;
  });
}

/** Indents JSON. Any other text stays as it is. */
export function pretty(text: string): string {
  if (text.length > 200_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
