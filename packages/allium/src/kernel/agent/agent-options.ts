/** What each option of an agent has to be. */

import { AlliumError, invalidOption, shown } from '../lib/errors.js';
import { FOREIGN_AGENT } from '../lib/foreign-names.js';
import { checkKeys, checkValue } from '../lib/shapes.js';
import { checkModel, MODEL_SETTINGS } from '../messages/model.js';
import { RULES } from '../plan/rules.js';
import { checkQueue } from '../plan/run-options.js';
import { checkLimits, checkSessionLimits } from '../protocol/limits.js';
import {
  type Checks,
  checkEach,
  checkFunction,
  checkList,
  checkMethods,
  checkNumber,
  checkOneOf,
  checkRecord,
  checkText,
  checkTimeout,
} from '../protocol/options.js';
import type { RuleHook } from '../protocol/plan.js';
import type { AgentOptions } from './agent.js';

/** What is always needed is looked at first, and some is checked where it is taken apart: by `compose`, or with prices. */
const elsewhere = (): void => {};

const CHECKS: Checks<Exclude<keyof AgentOptions, RuleHook>> = {
  model: elsewhere,
  name: checkName,
  systemPrompt: checkText,
  tools: elsewhere,
  middleware: elsewhere,
  settings: (option, value) => checkValue(option, MODEL_SETTINGS, value),
  toolChoiceTurns: (option, value) => checkOneOf(option, value, ['first', 'all']),
  limits: (_, value) => checkLimits(value as never),
  sessionLimits: (_, value) => checkSessionLimits(value as never),
  store: checkStore,
  observers: checkObservers,
  onObserverError: checkFunction,
  toolExecution: (option, value) => checkOneOf(option, value, ['parallel', 'sequential']),
  queue: checkQueue,
  teardownTimeoutMs: checkTimeout,
  storeTimeoutMs: (option, value) => checkNumber(option, value, 1, Number.POSITIVE_INFINITY),
  state: elsewhere,
  replaces: elsewhere,
  priceOf: elsewhere,
  tenant: checkText,
  onRequest: checkFunction,
  clock: (option, value) => checkMethods(option, value, ['now', 'setTimer']),
  newId: checkFunction,
};

const OPTIONS = [...Object.keys(CHECKS), ...Object.keys(RULES)];

export function checkAgentOptions(options: AgentOptions): void {
  checkRecord('options', options);
  checkKeys('Agent', options, OPTIONS, FOREIGN_AGENT);
  checkModel('model', options.model);
  checkEach(options, CHECKS);
}

function checkName(option: string, name: unknown): void {
  if (typeof name !== 'string' || name === '') throw invalidOption(option, 'non-empty text', name);
}

function checkStore(option: string, store: unknown): void {
  const missing = ['append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'].filter(
    (method) => typeof (store as Record<string, unknown> | null)?.[method] !== 'function',
  );
  if (missing.length > 0)
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected \`store\` to be a Store, got ${shown(store)} without ${missing.join(', ')}.`,
      { data: { option } },
    );
}

function checkObservers(option: string, observers: unknown): void {
  checkList(option, observers);
  for (const observer of observers as readonly { readonly onEvent?: unknown }[])
    if (typeof observer !== 'function' && typeof observer?.onEvent !== 'function')
      throw invalidOption(option, 'a list of functions or objects with onEvent()', observer);
}
