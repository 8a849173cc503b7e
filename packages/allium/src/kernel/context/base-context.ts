/** What every context has. */

import { type Attribution, attribute, invalidOption, leaveAlone } from '../lib/errors.js';
import { eventData } from '../lib/frozen-json.js';
import type { Scope } from '../lib/scope.js';
import type { Message, Metadata, ModelResponse, Usage } from '../messages/messages.js';
import type { Model, StreamTransform } from '../messages/model.js';
import type {
  DeclaredOptions,
  GenerateRequest,
  Context as PublicContext,
  RunningAgent,
} from '../protocol/contexts.js';
import type { Plan } from '../protocol/middleware.js';
import type { Seam } from '../protocol/plan.js';
import { type ControlSignal, controlKind, isControl, StopRun } from '../protocol/signals.js';
import type { StateAccess } from '../protocol/state.js';
import type { StoppingReason } from '../protocol/stop.js';
import type { Overlay } from './cells.js';
import { refuseForeignFields } from './foreign-fields.js';
import type { RunPort } from './run-port.js';
import type { SeamCall } from './seam-call.js';
import { showFields } from './shown-context.js';

/** The rarely used fields of a context. Made when the first of them is needed. */
export class Extras {
  state: Overlay | undefined = undefined;
  metadata: Record<string, unknown> | undefined = undefined;
  /** The part of `metadata` that came from an attempt. Removed when another attempt is chosen instead. */
  brought: Record<string, unknown> | undefined = undefined;
  /** Stream transforms of a model call. */
  transforms: (() => StreamTransform)[] | undefined = undefined;
  /** `forceContinue` came from an attempt. */
  forced = false;
  /** The system prompt after the guards; undefined if no guard judges it. */
  prompt: string | undefined = undefined;
  /** `convertToLlm` is running with this context. */
  converting = false;

  /** Takes a snapshot. The returned function restores it, except for what `generate()` wrote to cells. */
  mark(): () => Extras {
    const kept = Object.assign(new Extras(), this);
    if (this.metadata) kept.metadata = { ...this.metadata };
    const count = this.transforms?.length;
    const state = this.state?.mark();
    return () => {
      if (count !== undefined) kept.transforms!.length = count;
      kept.state ??= this.state;
      kept.state?.restore(state);
      return kept;
    };
  }

  /** Restores to empty: there was nothing before. */
  undone(): Extras {
    const left = new Extras();
    left.state = this.state;
    left.state?.restore();
    return left;
  }
}

export abstract class Context implements PublicContext {
  abstract readonly seam: Seam;
  /** @internal */ declare _run: RunPort;
  /** @internal The list position of the middleware that has this context; -1 for the kernel. */
  declare _position: number;
  /** @internal */ declare _scope: Scope;
  /** @internal */ declare _call: SeamCall;
  /** @internal */ declare _extra: Extras | undefined;

  constructor(run: RunPort, scope: Scope, call: SeamCall) {
    this._run = run;
    this._position = -1;
    this._scope = scope;
    this._call = call;
    this._extra = undefined;
  }

  get agent(): RunningAgent {
    return this._run.agent as RunningAgent;
  }
  get plan(): Plan {
    return this._run.plan;
  }
  get runId(): string {
    return this._run.runId;
  }
  get parentRunId(): string | undefined {
    return this._run.parentRunId;
  }
  get sessionId(): string {
    return this._run.sessionId;
  }
  get tenant(): string | undefined {
    return this._run.tenant;
  }
  get turn(): number {
    return this._run.turn;
  }
  get depth(): number {
    return this._run.depth;
  }
  get signal(): AbortSignal {
    return this._scope.signal;
  }
  get usage(): Usage {
    return this._run.budget.usage;
  }
  get pausedMs(): number {
    return this._run.pausedMs;
  }
  get isPaused(): boolean {
    return this._run.isPaused;
  }
  get isWatched(): boolean {
    return this._run.watched;
  }
  get costUsd(): number | undefined {
    return this._run.budget.costUsd;
  }
  get history(): readonly Message[] {
    return this._run.history.view();
  }
  get state(): StateAccess {
    const extra = this._extras();
    extra.state ??= this._run.cells.overlay();
    return extra.state;
  }
  get metadata(): Record<string, unknown> {
    const extra = this._extras();
    extra.metadata ??= {};
    return extra.metadata;
  }
  get runMetadata(): Metadata {
    return this._run.metadata;
  }
  get options(): DeclaredOptions {
    return this._run.options;
  }

  /** @internal */
  _extras(): Extras {
    this._extra ??= new Extras();
    return this._extra;
  }

  /** @internal Its writes to cells. */
  get _state(): Overlay | undefined {
    return this._extra?.state;
  }
  set _state(state: Overlay | undefined) {
    if (state !== this._state) this._extras().state = state;
  }

  /** @internal */
  get _metadata(): Record<string, unknown> | undefined {
    return this._extra?.metadata;
  }
  set _metadata(metadata: Record<string, unknown> | undefined) {
    if (metadata !== this._metadata) this._extras().metadata = metadata;
  }

  /** @internal It timed out or its attempt was abandoned, but the run goes on. Nothing it does counts any more. */
  get _isOver(): boolean {
    return this._scope.aborted && !this._run.scope.aborted;
  }

  /** @internal Makes a signal stick even if a layer swallows it. Ignored in an attempt that is over. */
  _latch(signal: unknown, by?: string): void {
    if (!this._isOver) this._call.latch(signal, by);
  }

  /** @internal Throws if nothing may start here any more: the run is ending, or this attempt was abandoned. */
  _checkBegin(): void {
    const ended = this._call.ended ?? this._scope.reason;
    if (ended !== undefined) throw ended;
  }

  stop(reason: StoppingReason = 'stopped', why?: string): never {
    const signal = new StopRun(reason, why);
    this._latch(signal, this._run.nameAt(this._position));
    throw signal;
  }

  emit(name: string, data?: unknown): void {
    if (typeof name !== 'string' || name === '')
      throw invalidOption('name', 'text in ctx.emit(name, data)', name);
    const { _run: run } = this;
    if (run.watched && !this._isOver) run.emitCustom(name, eventData(data), run.nameAt(this._position));
    else leaveAlone(data);
  }

  note(what: string): void {
    if (typeof what !== 'string' || what === '') throw invalidOption('what', 'text in ctx.note(what)', what);
    const { _run: run } = this;
    run.noteSaid(run.nameAt(this._position) ?? 'kernel', what);
  }

  generate(model: Model, request: GenerateRequest): Promise<ModelResponse> {
    const answer = this._run.generate(this, model, request).catch((error) => {
      // There is no turn to start again here, so the error stands.
      throw controlKind(error) === 'restart' ? error.cause : error;
    });
    // A caller that doesn't await it doesn't get its error either.
    answer.catch(() => {});
    return answer;
  }

  isInside(layer: PublicContext): boolean {
    for (let at: Scope | undefined = this._scope; at !== undefined; at = at.parent)
      if ((at as Scope & { readonly outer?: Context }).outer === layer) return true;
    return false;
  }

  /** @internal A control signal crossed a boundary inside a call. It sticks even if an outer layer swallows it. */
  _cross(error: ControlSignal, by = this._run.nameAt(this._position)): void {
    const kind = controlKind(error);
    if (kind === 'stop' || kind === 'suspend') this._latch(error, by);
  }

  /** @internal */
  _raised(value: unknown, by: Attribution): void {
    this._call._raised(value, by);
  }

  /** @internal Attributes an error to this middleware and returns it. A control signal is latched instead. */
  _blame(middleware: string, hook: string, error: unknown, more?: Partial<Attribution>): unknown {
    if (isControl(error)) this._cross(error, middleware);
    else attribute(error, { middleware, hook, ...more }, this);
    return error;
  }

  /** @internal Copies its own writes into a fork, but not those of earlier attempts. */
  protected _inherit<C extends Context>(fork: C): C {
    fork._position = this._position;
    if (this._extra !== undefined) inheritWrites(this._extra, fork);
    return fork;
  }

  /** @internal Adopts the writes of an attempt in place of those adopted before. */
  _adopt(fork: Context): void {
    if (fork._extra !== undefined || this._extra !== undefined)
      this._adoptWrites(fork._state, fork._metadata);
  }

  /**
   * @internal Adopts what a failed attempt wrote to cells. Nothing else was tried and its error goes outward, so its writes
   * count as they would with a result.
   */
  _adoptFailed(fork: Context): void {
    if (fork !== this) this._adoptState(fork._state);
  }

  private _adoptState(state: Overlay | undefined): void {
    if (state === undefined) this._extra?.state?.adopt(undefined);
    else (this.state as Overlay).adopt(state);
  }

  private _adoptWrites(state: Overlay | undefined, metadata: Record<string, unknown> | undefined): void {
    this._adoptState(state);
    if (metadata !== undefined || this._extra?.brought !== undefined)
      adoptMetadata(this._extras(), metadata ?? {});
  }
}
refuseForeignFields(Context.prototype);
showFields(Context.prototype);

function inheritWrites({ state, metadata, brought }: Extras, fork: Context): void {
  if (state !== undefined) fork._extras().state = state.fork();
  if (metadata === undefined) return;
  const copy = { ...metadata };
  fork._extras().metadata = copy;
  for (const key in brought) if (copy[key] === brought[key]) delete copy[key];
}

function adoptMetadata(extra: Extras, from: Record<string, unknown>): void {
  extra.metadata ??= {};
  const { metadata: mine, brought: before } = extra;
  for (const key in before) if (mine[key] === before[key]) delete mine[key];
  extra.brought = {};
  for (const key of Object.keys(from))
    if (!Object.hasOwn(mine, key)) mine[key] = extra.brought[key] = from[key];
}
