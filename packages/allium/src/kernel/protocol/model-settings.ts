/** What each setting of a model has to be. What is meant for one provider only is the provider's to check. */
import { invalidOption, isRecord } from '../lib/errors.js';
import { FOREIGN_SETTINGS } from '../lib/foreign-names.js';
import { checkKeys } from '../lib/shapes.js';
import type { ModelSettings } from './model.js';
import { checkRecord, isListOf } from './options.js';

interface Setting {
  readonly expected: string;
  readonly fits: (value: any) => boolean;
}

const amount: Setting = {
  expected: 'a finite number ≥ 0',
  fits: (value) => Number.isFinite(value) && value >= 0,
};

const SETTINGS: Readonly<Record<keyof ModelSettings, Setting>> = {
  maxOutputTokens: { expected: 'an integer ≥ 1', fits: (value) => Number.isInteger(value) && value >= 1 },
  temperature: amount,
  topP: amount,
  stopSequences: {
    expected: 'a list of texts',
    fits: (value) => isListOf(value, (one) => typeof one === 'string'),
  },
  seed: { expected: 'an integer', fits: Number.isInteger },
  toolChoice: { expected: "'auto', 'none', 'required' or { tool: '…' }", fits: isToolChoice },
  responseSchema: { expected: 'a JSON Schema as an object', fits: isRecord },
  provider: {
    expected: 'objects of options by the name of their provider',
    fits: (value) =>
      isRecord(value) && Object.values(value).every((one) => one === undefined || isRecord(one)),
  },
  systemMetadata: { expected: 'an object', fits: isRecord },
};

/** Settings that layers assign are checked with every call: as long as they are fine, no text is made. */
export function checkSettings(what: string, settings: unknown): void {
  checkRecord(what, settings);
  for (const name of Object.keys(settings as object) as (keyof ModelSettings)[]) {
    if (!Object.hasOwn(SETTINGS, name)) checkKeys(what, settings, Object.keys(SETTINGS), FOREIGN_SETTINGS);
    const { expected, fits } = SETTINGS[name];
    const value = (settings as ModelSettings)[name];
    if (value !== undefined && !fits(value)) throw invalidOption(`${what}.${name}`, expected, value);
  }
}

function isToolChoice(value: unknown): boolean {
  if (value === 'auto' || value === 'none' || value === 'required') return true;
  return isRecord(value) && Object.keys(value).length === 1 && typeof value.tool === 'string';
}
