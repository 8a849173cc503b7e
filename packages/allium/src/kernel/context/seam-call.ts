/** What the forks of one seam call share: its counters, its latch, and whether something in it is under way. */

import { type Attribution, attribution, type Raised } from '../lib/errors.js';
import type { Scope } from '../lib/scope.js';
import type { ModelResponse } from '../messages/messages.js';
import type { Context, ModelContext } from '../protocol/contexts.js';
import { controlKind } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { RequestParts, RunPort } from './run-port.js';

/** A control signal that was swallowed still counts: it is latched here. */
export class SeamCall {
  /** Calls of the model or tool itself. */
  attempts = 0;
  /** Inward calls beyond the first of a layer. */
  repeats = 0;
  latched: unknown = undefined;
  latchedBy: string | undefined = undefined;
  /** A signal that ends the run and was latched elsewhere: what is under way here may finish, nothing begins. */
  halted: unknown = undefined;
  /** Tools and models of the call that are under way. */
  private running = 0;
  /** The last one came to a result, with which the layers around it are at work. */
  private hasResult = false;
  /** Errors that an `onError` declared final on their way out. */
  final: Set<unknown> | undefined = undefined;
  /** Guards judge what is sent and what comes back; not so for the model calls of a guard itself. */
  guarded = true;
  /** `convertToLlm` is asked; not so for the model calls of that hook itself, or it would ask for ever. */
  converted = true;
  /** The last thrown value that is no object. */
  raised: Raised | undefined = undefined;
  /** A response or result that the kernel made, and has frozen with all that is in it. */
  frozen: unknown = undefined;
  /** What guards have said of responses, results and calls, by the content, the result, or what tells of the call. */
  judged: Map<unknown, Promise<any>> | undefined = undefined;
  /** At the model seam: what a layer with time limits of its own allows, where that is more than the defaults. */
  time: Partial<ModelTime> | undefined = undefined;

  constructor(
    readonly run: RunPort,
    /** Around everything that happens in the call. */
    readonly scope: Scope,
  ) {}

  get runId(): string {
    return this.run.runId;
  }

  /** Its layers begin: from here on it hears of a stop. */
  enter(): void {
    this.run.inside.push(this);
  }

  /** Its layers have ended. */
  leave(): void {
    const { inside } = this.run;
    // Mostly it is the only one.
    if (inside.at(-1) === this) inside.pop();
    else if (inside.includes(this)) inside.splice(inside.indexOf(this), 1);
    this.scope.close();
  }

  /** Notes who threw a value that is no object. What a model passes on belongs to the transform that threw it. */
  _raised(value: unknown, by: Attribution): void {
    const noted = this.raised;
    const passedOn = by.attempts !== undefined && noted?.by.middleware !== undefined && noted.value === value;
    this.raised = passedOn ? noted : { value, by };
    this.run.call.raised = this.raised;
  }

  /** Who raised an error, as far as it is known. */
  raisedBy(error: unknown): Attribution | undefined {
    const { raised } = this;
    return attribution(error) ?? (raised !== undefined && raised.value === error ? raised.by : undefined);
  }

  /** A stop holds for the whole run, from now on. */
  latch(signal: unknown, by?: string): void {
    if (this.latched !== undefined || signal === this.halted) return;
    this.latched = signal;
    this.latchedBy = by;
    if (controlKind(signal) === 'stop') this.run.halt(signal, by);
  }

  /** A boundary: throws what was latched. */
  check(): void {
    if (this.latched !== undefined) throw this.latched;
  }

  /** Why nothing may begin in here any more; undefined while something may. */
  get ended(): unknown {
    return this.latched ?? this.halted ?? this.run.scope.reason;
  }

  /** Throws where no model may be asked any more. A tool that runs beside one that asks a person may still do so. */
  checkAsk(): void {
    const ended = this.run.call.latched ?? this.latched ?? (this.isIdle ? this.halted : undefined);
    if (ended !== undefined) throw ended;
  }

  /** Nothing is under way, and no result has come that somebody is at work with. */
  private get isIdle(): boolean {
    return this.running === 0 && !this.hasResult;
  }

  /** The run is to end: waits for another try, or for a first one, end at once. What is under way comes to its end. */
  halt(signal: unknown): void {
    this.halted ??= signal;
    if (this.isIdle) this.scope.abort(this.halted);
  }

  /** A tool or model of the call begins; `workEnded` has to follow. */
  workBegins(): void {
    this.running++;
  }

  workEnded(hasResult: boolean): void {
    this.running--;
    this.hasResult = hasResult;
    if (this.halted !== undefined) this.halt(this.halted);
  }
}

/** Where a model call streams to, as far as guards have to do with it. */
export interface Showing {
  /** The stream of this response, where it is one that was shown. */
  streaming(
    response: ModelResponse,
  ): { end(response: ModelResponse, ctx: ModelContext): Awaitable<ModelResponse> } | undefined;
}

/**
 * The same for a model call. Its fields are set in the constructor, as in every class of which calls make one: field
 * initialisers of a subclass cost more than all else about it.
 */
export class ModelSeam extends SeamCall {
  /** Where it streams to; undefined for calls nobody watches. */
  declare readonly live: Showing | undefined;
  /** How much of the history the request covers. */
  declare readonly length: number;
  /** A layer has registered a transform. */
  declare transformed: boolean;
  /** Who asked for it with `generate()`. */
  declare caller: Context | undefined;
  /** The request before any layer saw it, where it is not simply the run's. */
  declare given: RequestParts | undefined;
  /** What `next({ … })` made of the request, by the context that goes in with it. */
  declare overridden: Map<ModelContext, RequestParts> | undefined;
  /** What was noted about the request of this call. */
  declare rewrites: { readonly by: string; readonly what: string }[] | undefined;
  /** Somebody set the model, if only to the same one: so `onError` can tell "no other model" from "none set". */
  declare modelSet: boolean;
  /** The most tokens the last attempt was allowed to write. */
  declare outputLimit: number | undefined;

  constructor(run: RunPort, scope: Scope, live: Showing | undefined, length: number) {
    super(run, scope);
    this.live = live;
    this.length = length;
    this.transformed = false;
    this.caller = undefined;
    this.given = undefined;
    this.overridden = undefined;
    this.rewrites = undefined;
    this.modelSet = false;
    this.outputLimit = undefined;
  }
}

export interface ModelTime {
  readonly idleMs: number;
  readonly totalMs: number;
}
