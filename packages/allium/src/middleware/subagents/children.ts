/** The agents behind the types, made on first use, once for each calling agent. */
import {
  Agent,
  compose,
  defineMiddleware,
  type Middleware,
  type MiddlewareList,
  type Model,
  type Tool,
} from '../../index.js';
import type { SubagentSpec } from './index.js';

export interface ChildParts {
  readonly defaultModel: Model | undefined;
  readonly sharedTools: readonly Tool[];
  readonly excludeTools: readonly string[];
  /** Outside the middleware that the child's specification lists. */
  readonly outer: MiddlewareList;
}

/** What doesn't depend on the type: the agent at the top, whose clock, ids and prices its children use. */
interface Family {
  readonly root: Agent;
  readonly agents: Map<string, Agent>;
}

export class Children {
  private readonly families = new WeakMap<Agent, Family>();

  constructor(private readonly parts: ChildParts) {}

  /** The agent of a type. `inner`: present if it may have sub-agents itself. */
  of(parent: Agent, type: string, spec: SubagentSpec, inner: readonly Middleware[]): Agent {
    let family = this.families.get(parent);
    if (!family) {
      family = { root: parent, agents: new Map() };
      this.families.set(parent, family);
    }
    const key = `${inner.length} ${type}`;
    let agent = family.agents.get(key);
    if (!agent) {
      agent = this.make(family.root, type, spec, inner);
      family.agents.set(key, agent);
      // A child that calls is served from the same family, so levels don't multiply the agents.
      this.families.set(agent, family);
    }
    return agent;
  }

  /** Throws what making the agent would, before there is a caller. */
  check(spec: SubagentSpec, inner: readonly Middleware[]): void {
    compose(this.middlewareOf(spec, inner), { tools: this.toolsOf(spec) });
  }

  private make(root: Agent, type: string, spec: SubagentSpec, inner: readonly Middleware[]): Agent {
    const { name = type, systemPrompt, model = this.parts.defaultModel ?? root.model } = spec;
    return new Agent({
      name,
      model,
      systemPrompt,
      tools: this.toolsOf(spec),
      middleware: this.middlewareOf(spec, inner),
      toolExecution: root.toolExecution,
      teardownTimeoutMs: root.teardownTimeoutMs,
      priceOf: root.priceOf,
      clock: root.clock,
      newId: () => root.newId(),
    });
  }

  private toolsOf({ tools = [] }: SubagentSpec): readonly Tool[] {
    const { sharedTools, excludeTools } = this.parts;
    const own = new Set(tools.map(({ name }) => name));
    const shared = sharedTools.filter(({ name }) => !own.has(name));
    return [...shared, ...tools].filter(({ name }) => !excludeTools.includes(name));
  }

  private middlewareOf({ middleware = [] }: SubagentSpec, inner: readonly Middleware[]): MiddlewareList {
    const { outer, excludeTools } = this.parts;
    return [outer, middleware, inner, excludeTools.length > 0 ? [exclude(excludeTools)] : []];
  }
}

/** Tools also come from middleware, and from layers and hooks during a run: they are removed innermost. */
function exclude(names: readonly string[]): Middleware {
  const excluded = new Set(names);
  return defineMiddleware({
    name: 'exclude-tools',
    beforeModel(ctx) {
      if (ctx.tools.some(({ name }) => excluded.has(name)))
        ctx.tools = ctx.tools.filter(({ name }) => !excluded.has(name));
    },
    beforeToolCall(ctx) {
      const { name } = ctx.tool!;
      if (excluded.has(name)) return { block: true, reason: `"${name}" is not for sub-agents.` };
    },
  });
}
