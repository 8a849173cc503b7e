/** Whether the options are what they have to be, before anything runs. */

import type { Middleware, Model } from '../../index.js';
import {
  checkMembers,
  checkMethods,
  checkOptions,
  flattenMiddleware,
  invalidOption,
  isTool,
} from '../../kit/index.js';

const SPEC = ['name', 'description', 'systemPrompt', 'model', 'tools', 'middleware'];

export function checkAgents(agents: unknown): void {
  if (typeof agents !== 'object' || agents === null || Array.isArray(agents))
    throw invalidOption('agents', 'an object of sub-agents by type', agents);
  for (const [type, spec] of Object.entries(agents)) {
    const at = `agents.${type}`;
    checkOptions(at, spec, SPEC);
    for (const key of ['description', 'systemPrompt'] as const)
      if (typeof spec[key] !== 'string') throw invalidOption(`${at}.${key}`, 'text', spec[key]);
    if (spec.name !== undefined && typeof spec.name !== 'string')
      throw invalidOption(`${at}.name`, 'text', spec.name);
    if (spec.model !== undefined) checkModel(`${at}.model`, spec.model);
    if (spec.tools !== undefined) checkTools(`${at}.tools`, spec.tools);
    if (spec.middleware !== undefined) checkMiddlewareList(`${at}.middleware`, spec.middleware);
  }
}

export function checkModel(option: string, model: unknown): void {
  checkMethods(option, model, ['stream']);
  const { provider, id } = model as Model;
  if (typeof provider !== 'string' || typeof id !== 'string')
    throw invalidOption(option, 'a model with `provider` and `id` as text', { provider, id });
}

export function checkTools(option: string, tools: unknown, what: 'tools' | 'names' = 'tools'): void {
  const fits = what === 'tools' ? isTool : (one: unknown) => typeof one === 'string';
  if (!Array.isArray(tools) || !tools.every(fits))
    throw invalidOption(option, what === 'tools' ? 'a list of tools' : 'a list of names of tools', tools);
}

/** Throws what the agent would, but when the list is given and not when the first task is. */
export function checkMiddlewareList(option: string, list: unknown): void {
  const object = typeof list === 'object' && list !== null;
  if (!object || !(Array.isArray(list) || 'layers' in list))
    throw invalidOption(option, 'a list of middleware', list);
  flattenMiddleware(list as never, option);
}

export function checkTracer(tracer: unknown): asserts tracer is Middleware {
  if (typeof tracer !== 'object' || tracer === null || Array.isArray(tracer))
    throw invalidOption('tracer', 'a middleware', tracer);
  checkMembers(tracer, '`tracer`');
}
