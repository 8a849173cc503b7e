/** Checks of what callers pass in. */
import { checkKeys, invalidOption } from 'allium/kit';
import { isObject, type Loose } from './language-model.js';

/** Their names, and what they are. */
export function checkOptions(what: string, options: unknown, allowed: readonly string[]): void {
  checkKeys(`${what}()`, options, allowed);
  checkTypes(options as Loose);
}

/** Checks the options that are known by name; those who take others check those. */
export function checkTypes(options: Loose): void {
  for (const [option, [expected, fits]] of Object.entries(TYPES)) {
    const value = options[option];
    if (value !== undefined && !fits(value)) throw invalidOption(option, expected, value);
  }
  for (const [name, value] of membersOf(options.headers))
    if (value !== undefined && !isText(value)) throw invalidOption(`headers.${name}`, 'text', value);
  for (const [name, tool] of membersOf(options.providerTools))
    if (!isObject(tool) || !isText(tool.id))
      throw invalidOption(`providerTools.${name}`, 'a tool that a provider defines, with an `id`', tool);
  for (const [provider, own] of membersOf(options.systemOptions))
    if (!isTable(own)) throw invalidOption(`systemOptions.${provider}`, 'an object', own);
  if (options.price !== undefined) checkPrice(options.price as Loose);
}

/** What each has to be, in words, and a check. */
const TYPES: Readonly<Record<string, readonly [expected: string, fits: (value: unknown) => boolean]>> = {
  provider: ['non-empty text', (value) => isText(value) && value !== ''],
  id: ['non-empty text', (value) => isText(value) && value !== ''],
  price: ['an object with `input` and `output`', isTable],
  providerTools: ['an object of tools by name', isTable],
  systemOptions: ['an object of options by provider', isTable],
  callOptions: ['an object', isTable],
  optionKeys: ['a list of names', (value) => Array.isArray(value) && value.every(isText)],
  jsonMode: [
    "true, false or 'without-tools'",
    (value) => typeof value === 'boolean' || value === 'without-tools',
  ],
  acceptUnfinished: ['true or false', (value) => typeof value === 'boolean'],
  apiKey: ['text', isText],
  baseUrl: ['text', isText],
  headers: ['an object of texts by name', isTable],
  fetch: ['a function', (value) => typeof value === 'function'],
  tenant: ['text', isText],
};

function checkPrice({ input, output, cacheRead = 0, cacheWrite = 0 }: Loose): void {
  for (const [key, amount] of Object.entries({ input, output, cacheRead, cacheWrite }))
    if (!Number.isFinite(amount) || (amount as number) < 0)
      throw invalidOption(`price.${key}`, 'a number ≥ 0, in dollars per million tokens', amount);
}

function membersOf(value: unknown): [string, unknown][] {
  return Object.entries(value ?? {});
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTable(value: unknown): boolean {
  return isObject(value) && !Array.isArray(value);
}
