/** What replaces personal data. */
import { createHmac } from 'node:crypto';
import type { Finding } from '../scan/finding.js';

/** `[email]` */
export function redacted({ kind }: Finding): string {
  return `[${kind}]`;
}

/** Keeps what a person who knows two values tells them apart by, and hides the rest: `**** **** **** 1111`. */
export function masked({ kind }: Finding, value: string): string {
  if (kind === 'email') {
    const at = value.lastIndexOf('@');
    return `${value.slice(0, 1)}***${value.slice(at)}`;
  }
  if (kind === 'ip') return value.replace(/([.:])[0-9a-f]+(?:[.:]+[0-9a-f]*)+$/i, (_, sign) => `${sign}***`);
  if (kind === 'mac') return value.replace(/[0-9a-f](?=.{9})/gi, '*');
  if (kind === 'url-credentials') return '***:***';
  if (kind === 'url') return value.replace(/(?<=^[^:]*:\/\/|^www\.).*$/s, '***');
  const shown = kind === 'ssn' || kind === 'credit-card' || kind === 'iban' ? 4 : 2;
  let left = value.replace(/[^A-Za-z0-9]/g, '').length - shown;
  return value.replace(/[A-Za-z0-9]/g, (character) => (left-- > 0 ? '*' : character));
}

/** `[email:3f9a1c0b2d4e]`: the same for the same value and key. Without the key nothing leads back to the value. */
export function hashed({ kind }: Finding, value: string, key: string): string {
  return `[${kind}:${keyedHash(value, key).slice(0, 12)}]`;
}

/** Numbers written with other separators, and addresses in other case, are the same. */
export function keyedHash(value: string, key: string): string {
  return createHmac('sha256', key).update(normalised(value)).digest('hex');
}

/** The same for all ways to write a value. */
export function normalised(value: string): string {
  return /[@:/]/.test(value) ? value.toLowerCase() : value.replace(/[^A-Za-z0-9+]/g, '').toUpperCase();
}
