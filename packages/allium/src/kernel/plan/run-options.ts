/** Options of a run: the kernel's own, and those that middleware declare with `runOptions`. */

import type { Context } from '../context/context.js';
import { invalidOption } from '../lib/errors.js';
import { FOREIGN_RUN } from '../lib/foreign-names.js';
import { checkKeys, checkValue } from '../lib/shapes.js';
import { MODEL_SETTINGS } from '../messages/model.js';
import type { GenerateRequest } from '../protocol/contexts.js';
import { checkLimits, type Limits } from '../protocol/limits.js';
import {
  type Checks,
  checkEach,
  checkFunction,
  checkOneOf,
  checkOptions,
  checkRecord,
  checkText,
  isListOf,
} from '../protocol/options.js';
import type { DeclaredOptions, ResumeOptions } from '../protocol/run-options.js';
import type { Tool } from '../protocol/tool.js';

/** Middleware are checked when they are composed. */
const RUN_CHECKS: Checks = {
  middleware: () => {},
  signal: checkSignal,
  limits: (_, value) => checkLimits(value as Limits),
  tenant: checkText,
  queue: checkQueue,
  metadata: checkRecord,
  onRequest: checkFunction,
  parent: checkParent,
  inheritGuards: checkFlag,
};

const RESUME_CHECKS: Checks = {
  ...RUN_CHECKS,
  answers: checkRecord,
  allowPlanChange: checkFlag,
};

/** What `run()` and `stream()` take by themselves. */
export const RUN_OPTIONS: readonly string[] = Object.keys(RUN_CHECKS);

/** What `resume()` takes beside them. */
export const RESUME_OPTIONS: readonly string[] = Object.keys(RESUME_CHECKS);

/** Most runs are given none, and cost nothing here. */
export function checkRunOptions(options: ResumeOptions): void {
  checkEach(options, RESUME_CHECKS);
}

export function checkQueue(option: string, value: unknown): void {
  checkRecord(option, value);
  checkKeys(option, value, ['steering', 'followUps']);
  for (const [kind, mode] of Object.entries(value as object))
    if (mode !== undefined) checkOneOf(`${option}.${kind}`, mode, ['all', 'one']);
}

function checkSignal(option: string, value: unknown): void {
  if (!(value instanceof AbortSignal)) throw invalidOption(option, 'an AbortSignal', value);
}

/** By what the kernel reads of it: it may come from another copy of this package. */
function checkParent(option: string, value: unknown): void {
  const run = (value as Partial<Context> | null)?._run;
  if (typeof run !== 'object') throw invalidOption(option, 'the `ctx` of a hook or tool', value);
}

function checkFlag(option: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidOption(option, 'true or false', value);
}

export const NONE_DECLARED: DeclaredOptions = Object.freeze({});

/**
 * The options that are not the kernel's own. Throws for those that no middleware declares; who declares what is
 * asked only when there are any, which in most runs there are not.
 */
export function declaredOptions(
  what: string,
  options: object,
  own: readonly string[],
  declared: () => readonly string[],
): DeclaredOptions {
  if (Object.keys(options).every((name) => own.includes(name))) return NONE_DECLARED;
  checkKeys(what, options, [...own, ...declared()], FOREIGN_RUN);
  const given = Object.entries(options).filter(([name, value]) => !own.includes(name) && value !== undefined);
  return Object.freeze(Object.fromEntries(given));
}

/** What a middleware gives to `ctx.generate()`: a misspelt or wrong part would otherwise be ignored or fail further in. */
export function checkGenerate(request: GenerateRequest): void {
  checkOptions('ctx.generate', request, GENERATE_OPTIONS);
  const { messages, systemPrompt, tools, settings } = request;
  if (messages === undefined)
    throw invalidOption('messages', 'text or messages for ctx.generate()', messages);
  if (systemPrompt !== undefined) checkText('systemPrompt', systemPrompt);
  const isTool = (one: unknown) => typeof (one as Tool | null)?.execute === 'function';
  if (tools !== undefined && !isListOf(tools, isTool))
    throw invalidOption('tools', 'a list of tools made with tool()', tools);
  if (settings !== undefined) checkValue('settings', MODEL_SETTINGS, settings);
}

const GENERATE_OPTIONS = ['messages', 'systemPrompt', 'tools', 'settings'];
