/** What a plan does, before anything runs: the chain at every seam, rule and guard point, and its hazards. */

import { longSessions } from '../compose/looks-back.js';
import { optionsData } from '../compose/twins.js';
import { modelName } from '../kernel/messages/model.js';
import { extraModels } from '../kernel/plan/extra-models.js';
import type { GuardPoint } from '../kernel/protocol/guard.js';
import type { Hazard, Plan } from '../kernel/protocol/middleware.js';
import { RULE_HOOKS, RULES, type RuleHook, SEAMS, type Seam } from '../kernel/protocol/plan.js';
import { RUNS_AGENTS, UNGUARDED_AGENTS } from '../kit/child-tags.js';
import { findHazards } from './hazards.js';

export interface Explanation {
  readonly middleware: readonly {
    readonly name: string;
    readonly traits: readonly string[];
    readonly onFail: 'open' | 'closed';
    /** The options it was made with, if it says. Values that aren't data are shown as a mark, such as `[function]`. */
    readonly madeWith?: unknown;
  }[];
  /** Names from the outside in; a middleware appears once per seam. */
  readonly layers: Readonly<
    Record<Seam, readonly { readonly name: string; readonly hooks: readonly string[] }[]>
  >;
  /** `shadowed` members never run. */
  readonly rules: readonly {
    readonly hook: RuleHook;
    readonly rule: string;
    readonly detail: string;
    readonly members: readonly string[];
    readonly shadowed: readonly string[];
  }[];
  readonly guards: readonly { readonly point: GuardPoint; readonly members: readonly string[] }[];
  readonly tools: readonly string[];
  /** Models that middleware may call for themselves, beside the agent's. */
  readonly models: readonly { readonly by: string; readonly model: string }[];
  /** Tools that run other agents, and the guards of this one that judge there too. */
  readonly subagents: readonly { readonly tool: string; readonly guards: readonly string[] }[];
  readonly state: readonly string[];
  /**
   * If a middleware leaves older messages out of requests, runs in a long session read only its end, unless somebody may look
   * further back: those who don't say otherwise with `looksBack`, or read traces.
   */
  readonly longSessions: {
    readonly shortenedBy: readonly string[];
    readonly readWholeFor: readonly string[];
  };
  readonly hazards: readonly Hazard[];
  toString(): string;
}

export function explainPlan(plan: Plan): Explanation {
  const explanation = {
    middleware: plan.middleware.map(({ name, middleware }) => ({
      name,
      traits: middleware.traits ?? [],
      onFail: middleware.onFail ?? ('closed' as const),
      ...(middleware.madeWith && { madeWith: optionsData(middleware.madeWith).data }),
    })),
    layers: { run: layersAt(plan, 'run'), model: layersAt(plan, 'model'), tool: layersAt(plan, 'tool') },
    rules: rulesIn(plan),
    guards: (Object.keys(plan.guards) as GuardPoint[])
      .filter((point) => plan.guards[point].length > 0)
      .map((point) => ({ point, members: plan.guards[point].map(({ name }) => name) })),
    tools: plan.tools.map(({ name }) => name),
    models: extraModels(plan).map(({ by, model }) => ({ by, model: modelName(model) })),
    subagents: subagentsIn(plan),
    state: [...plan.cells].map(
      ([cell, key]) => `${key} (${cell.scope}${cell.scope === 'run' && !cell.durable ? ', live' : ''})`,
    ),
    longSessions: longSessions(plan),
    hazards: findHazards(plan),
  };
  return { ...explanation, toString: () => render(explanation) };
}

function subagentsIn(plan: Plan): Explanation['subagents'] {
  const guards = plan.middleware.filter(({ middleware }) => middleware.guard).map(({ name }) => name);
  return plan.tools.flatMap(({ name: tool, tags }) => {
    if (tags?.includes(RUNS_AGENTS)) return { tool, guards };
    return tags?.includes(UNGUARDED_AGENTS) ? { tool, guards: [] } : [];
  });
}

function layersAt(plan: Plan, seam: Seam): { name: string; hooks: string[] }[] {
  const out: { name: string; hooks: string[] }[] = [];
  for (const layer of plan.layers[seam]) {
    const last = out.at(-1);
    if (last?.name === layer.name) last.hooks.push(...layer.hooks);
    else out.push({ name: layer.name, hooks: [...layer.hooks] });
  }
  return out;
}

function rulesIn(plan: Plan): Explanation['rules'] {
  return RULE_HOOKS.flatMap((hook) => {
    const members = plan.rules[hook].map(({ name }) => name);
    const replaced = plan.replaced.find((one) => one.hook === hook)?.names ?? [];
    const shadowed = [...replaced, ...members.slice(0, members.length - runningOf(hook, members).length)];
    return members.length === 0 ? [] : [{ hook, ...RULES[hook], members, shadowed }];
  });
}

/** The members of a rule that actually run. */
function runningOf(hook: RuleHook, members: readonly string[]): readonly string[] {
  return hook === 'convertToLlm' ? members.slice(-1) : members;
}

function render(plan: Omit<Explanation, 'toString'>): string {
  const lines: string[] = [
    `Plan: ${plan.middleware.length} middleware, ${plan.tools.length} ${plan.tools.length === 1 ? 'tool' : 'tools'}`,
  ];
  const seamEnd: Record<Seam, string> = { run: 'the loop', model: 'the model', tool: 'the tool' };
  for (const seam of SEAMS) {
    if (plan.layers[seam].length === 0) continue;
    lines.push('', `${seam} layers, from the outside in`);
    for (const [depth, { name, hooks }] of plan.layers[seam].entries())
      lines.push(`  ${'  '.repeat(depth)}${name} (${hooks.join(', ')})`);
    lines.push(`  ${'  '.repeat(plan.layers[seam].length)}${seamEnd[seam]}`);
  }
  if (plan.rules.length > 0) lines.push('', 'Rules');
  for (const { hook, rule, members, shadowed } of plan.rules) {
    // A middleware may be named "agent", like the agent's own hook that replaces it.
    const silent = shadowed.map((name) => (name === 'agent' ? 'the middleware "agent"' : name));
    const out = silent.length > 0 ? `; never runs: ${silent.join(', ')}` : '';
    lines.push(`  ${hook} (${rule}): ${runningOf(hook, members).join(' → ')}${out}`);
  }
  if (plan.guards.length > 0) lines.push('', 'Guards');
  for (const { point, members } of plan.guards) lines.push(`  ${point}: ${members.join(' → ')}`);
  if (plan.tools.length > 0) lines.push('', `Tools: ${plan.tools.join(', ')}`);
  for (const { tool, guards } of plan.subagents)
    lines.push(
      `  ${tool} runs agents under ${guards.length > 0 ? guards.join(', ') : 'no guards of this one'}`,
    );
  if (plan.models.length > 0)
    lines.push('', `Further models: ${plan.models.map(({ by, model }) => `${model} (${by})`).join(', ')}`);
  if (plan.state.length > 0) lines.push('', `State: ${plan.state.join(', ')}`);
  const { shortenedBy, readWholeFor } = plan.longSessions;
  if (shortenedBy.length > 0 && readWholeFor.length === 0)
    lines.push('', `Long sessions: only the end is read, thanks to ${shortenedBy.join(', ')}`);
  else if (shortenedBy.length > 0)
    lines.push(
      '',
      `Long sessions: read whole, because of ${readWholeFor.join(', ')} (no \`looksBack\`, or traces)`,
    );
  if (plan.hazards.length > 0) lines.push('', 'Hazards');
  for (const { id, message, fix } of plan.hazards) lines.push(`  ! ${id}: ${message}`, `    ${fix}`);
  return lines.join('\n');
}
