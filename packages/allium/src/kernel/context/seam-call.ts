/** The state that all forks of one model or tool call share: counters, latch, and work in progress. */

import { type Attribution, attribution, type Raised } from '../lib/errors.js';
import type { Scope } from '../lib/scope.js';
import type { ModelResponse } from '../messages/messages.js';
import type { Context, ModelContext } from '../protocol/contexts.js';
import { controlKind } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { RequestParts, RunPort } from './run-port.js';

/**
 * Control signals are latched here, so they count even if a layer swallows them. It has a scope instead of being one: scopes
 * are walked at every step, which is slow if they have many shapes.
 */
export class SeamCall {
  /** Calls of the model or tool itself. */
  attempts = 0;
  /** How many tools and models of the call are running. */
  private running = 0;
  /** The last one returned a result that layers or, after them, rules are processing. */
  private hasResult = false;
  /** A response or result that the kernel made and deeply froze. */
  frozen: unknown = undefined;
  /** Repeated inward calls of layers. */
  declare repeats: number;
  declare latched: unknown;
  declare latchedBy: string | undefined;
  /** A signal latched elsewhere that ends the run. Work in progress may finish; nothing new starts. */
  declare halted: unknown;
  /** Errors that an `onError` declared final on their way out. */
  declare final: Set<unknown> | undefined;
  /** Guards judge the request and the response. Off for a guard's own model calls. */
  declare guarded: boolean;
  /** `convertToLlm` runs. Off for that hook's own model calls, or it would loop forever. */
  declare converted: boolean;
  /** The last thrown value that isn't an object. */
  declare raised: Raised | undefined;
  /** Verdicts of guards, by the content of a response, a result, or a key of a call. */
  declare judged: Map<unknown, Promise<any>> | undefined;
  /** For model calls: longer time limits that a layer allows. */
  declare time: Partial<ModelTime> | undefined;

  constructor(
    readonly run: RunPort,
    /** Encloses everything that happens in the call. */
    readonly scope: Scope,
  ) {}

  get runId(): string {
    return this.run.runId;
  }

  /** Its layers start: from here on it hears of a stop. */
  enter(): void {
    this.run.inside.push(this);
  }

  /** Its layers have ended. What follows concerns the result. */
  leave(): void {
    this.hasResult = true;
    const { inside } = this.run;
    // Usually it is the only one.
    if (inside.at(-1) === this) inside.pop();
    else if (inside.includes(this)) inside.splice(inside.indexOf(this), 1);
    this.scope.close();
  }

  /** Notes who threw a value that isn't an object. If a model passes it on, it still belongs to the transform that threw it. */
  _raised(value: unknown, by: Attribution): void {
    const noted = this.raised;
    const passedOn = by.attempts !== undefined && noted?.by.middleware !== undefined && noted.value === value;
    this.raised = passedOn ? noted : { value, by };
    this.run.call.raised = this.raised;
  }

  /** Who raised an error, if known. */
  raisedBy(error: unknown): Attribution | undefined {
    const { raised } = this;
    return attribution(error) ?? (raised !== undefined && raised.value === error ? raised.by : undefined);
  }

  /** Latches a signal. A stop ends the whole run. */
  latch(signal: unknown, by?: string): void {
    if (this.latched !== undefined || signal === this.halted) return;
    this.latched = signal;
    this.latchedBy = by;
    if (controlKind(signal) === 'stop') this.run.halt(signal, by);
  }

  /** Throws what was latched. */
  check(): void {
    if (this.latched !== undefined) throw this.latched;
  }

  /** Why nothing may start here any more, if so. */
  get ended(): unknown {
    return this.latched ?? this.halted ?? this.run.scope.reason;
  }

  /** Throws if no model may be called any more. A tool may still call one while another tool asks a person. */
  checkAsk(): void {
    const ended = this.run.call.latched ?? this.latched ?? (this.isIdle ? this.halted : undefined);
    if (ended !== undefined) throw ended;
  }

  /** Nothing is running, and no result is being processed. */
  private get isIdle(): boolean {
    return this.running === 0 && !this.hasResult;
  }

  /** The run is ending. Waits for a first or another try are cut short; what is running may finish. */
  halt(signal: unknown): void {
    this.halted ??= signal;
    if (this.isIdle) this.scope.abort(this.halted);
  }

  /** A tool or model of the call starts. `workEnded` must follow. */
  workBegins(): void {
    this.running++;
  }

  workEnded(hasResult: boolean): void {
    this.running--;
    this.hasResult = hasResult;
    if (this.halted !== undefined) this.halt(this.halted);
  }
}

/** Defaults of what most calls never set. On the prototype, because every turn makes two calls. */
Object.assign(SeamCall.prototype, {
  repeats: 0,
  latched: undefined,
  latchedBy: undefined,
  halted: undefined,
  final: undefined,
  guarded: true,
  converted: true,
  raised: undefined,
  judged: undefined,
  time: undefined,
} satisfies Partial<SeamCall>);

/** Where a model call streams to, as guards use it. */
export interface Showing {
  /** The stream that showed this response, if one did. */
  streaming(
    response: ModelResponse,
  ): { end(response: ModelResponse, ctx: ModelContext): Awaitable<ModelResponse> } | undefined;
}

/** The same for a model call. Fields are set in the constructor, because field initialisers of a subclass are slow. */
export class ModelSeam extends SeamCall {
  /** Where it streams to; undefined for calls nobody watches. */
  declare readonly live: Showing | undefined;
  /** How much of the history the request covers. */
  declare readonly length: number;
  /** A layer has registered a transform. */
  declare transformed: boolean;
  /** The context that made the call with `generate()`. */
  declare caller: Context | undefined;
  /** The request before any layer saw it, if it isn't the run's. */
  declare given: RequestParts | undefined;
  /** Requests that `next({ … })` changed, by the context that goes in with them. */
  declare overridden: Map<ModelContext, RequestParts> | undefined;
  /** The rewrites noted so far. */
  declare rewrites: { readonly by: string; readonly what: string }[] | undefined;
  /** A layer set the model, even if to the same one. `onError` uses it to tell "no other model" from "none set". */
  declare modelSet: boolean;
  /** The most tokens the last attempt was allowed to write. */
  declare outputLimit: number | undefined;

  constructor(run: RunPort, scope: Scope, live: Showing | undefined, length: number) {
    super(run, scope);
    this.live = live;
    this.length = length;
    this.outputLimit = undefined;
  }
}

Object.assign(ModelSeam.prototype, {
  transformed: false,
  caller: undefined,
  given: undefined,
  overridden: undefined,
  rewrites: undefined,
  modelSet: false,
} satisfies Partial<ModelSeam>);

export interface ModelTime {
  readonly idleMs: number;
  readonly totalMs: number;
}
