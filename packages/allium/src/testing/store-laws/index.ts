/** The laws of the store port. Each checks one promise, so that a broken store fails under the right name. */
import { HANDLE_LAWS } from './handle-laws.js';
import { INBOX_LAWS } from './inbox-laws.js';
import { JOURNAL_LAWS } from './journal-laws.js';
import type { StoreLawEntry } from './law.js';
import { SESSION_LAWS } from './session-laws.js';
import { TAIL_LAWS } from './tail-laws.js';

export type { LawContext } from './law.js';

const LAWS = [...JOURNAL_LAWS, ...SESSION_LAWS, ...INBOX_LAWS, ...HANDLE_LAWS, ...TAIL_LAWS] as const;

export type StoreLaw = (typeof LAWS)[number]['law'];

export const STORE_LAWS: readonly (StoreLawEntry & { readonly law: StoreLaw })[] = LAWS;
