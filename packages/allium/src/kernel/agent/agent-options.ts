/** What each option of an agent has to be. */

import { FOREIGN_AGENT } from '../lib/foreign-names.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, type Fields, type Kind } from '../lib/shapes.js';
import { MODEL, MODEL_SETTINGS } from '../messages/model.js';
import { RULES } from '../plan/rules.js';
import { QUEUE_MODES } from '../plan/run-options.js';
import { LIMITS, SESSION_LIMITS } from '../protocol/limits.js';
import type { RuleHook } from '../protocol/plan.js';
import type { Store } from '../protocol/store.js';
import type { AgentOptions } from './agent.js';

export const STORE: Kind<Store> = kinds.methods<Store>(
  'append',
  'read',
  'head',
  'list',
  'fork',
  'delete',
  'post',
  'take',
);

/** Checked where it is taken apart: by `compose()`, or by the reader of prices. */
const elsewhere = kinds.anything;

const OPTIONS: Fields = {
  model: kinds.required(MODEL),
  name: kinds.nonEmptyText,
  systemPrompt: kinds.text,
  tools: elsewhere,
  middleware: elsewhere,
  settings: MODEL_SETTINGS,
  toolChoiceTurns: kinds.oneOf('first', 'all'),
  limits: LIMITS,
  sessionLimits: SESSION_LIMITS,
  store: STORE,
  observers: kinds.listOf(kinds.either(kinds.func(), kinds.methods<{ onEvent(): void }>('onEvent'))),
  onObserverError: kinds.func(),
  toolExecution: kinds.oneOf('parallel', 'sequential'),
  queue: QUEUE_MODES,
  teardownTimeoutMs: kinds.timeout,
  storeTimeoutMs: kinds.number(1, Number.POSITIVE_INFINITY),
  state: elsewhere,
  replaces: elsewhere,
  priceOf: elsewhere,
  tenant: kinds.text,
  onRequest: kinds.func(),
  clock: kinds.methods<{ now(): void; setTimer(): void }>('now', 'setTimer'),
  newId: kinds.func(),
  ...Object.fromEntries(Object.keys(RULES).map((hook) => [hook, elsewhere])),
} satisfies Record<Exclude<keyof AgentOptions, RuleHook>, Kind>;

export function checkAgentOptions(options: AgentOptions): void {
  checkFields('Agent', OPTIONS, options, FOREIGN_AGENT);
}
