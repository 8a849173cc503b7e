/** A model call that a middleware makes for itself, through the layers inside it. */

import type { Overlay } from '../context/cells.js';
import { type Context, ModelContext, ModelSeam } from '../context/context.js';
import { frozenMessages } from '../context/request-checks.js';
import { originalOf } from '../guards/guard-model-calls.js';
import { Onion } from '../layers/onion.js';
import { AlliumError } from '../lib/errors.js';
import * as kinds from '../lib/kinds.js';
import { Scope } from '../lib/scope.js';
import { checkFields, checkValue, type Fields, type Kind } from '../lib/shapes.js';
import { toMessages } from '../messages/message-input.js';
import type { ModelResponse } from '../messages/messages.js';
import { MODEL, MODEL_SETTINGS, type Model } from '../messages/model.js';
import type { GenerateRequest } from '../protocol/contexts.js';
import { isControl } from '../protocol/signals.js';
import { callModel } from './model-call.js';
import type { ModelRun } from './model-run.js';

const REQUEST: Fields = {
  messages: kinds.required(kinds.kind('text or messages for ctx.generate()', (value) => value !== undefined)),
  systemPrompt: kinds.text,
  tools: kinds.listOf(
    kinds.kind('a tool', (one) => typeof one?.execute === 'function'),
    'a list of tools made with tool()',
  ),
  settings: MODEL_SETTINGS,
} satisfies Record<keyof GenerateRequest, Kind>;

export async function generate(
  run: ModelRun,
  caller: Context,
  model: Model,
  request: GenerateRequest,
): Promise<ModelResponse> {
  checkValue('model of ctx.generate()', MODEL, model);
  checkFields('ctx.generate()', REQUEST, request);
  // Its usage would be in no journal and count for no limit.
  if (run.over)
    throw new AlliumError(
      'MISSING_AWAIT',
      'ctx.generate() was called after the run had ended. Await everything inside the hook or tool.',
    );
  caller._call.checkAsk();
  const { messages, systemPrompt = '', tools = [], settings = {} } = request;
  // Its own signal: many of these may wait at once.
  const scope = new Scope(caller._scope);
  const call = new ModelSeam(run, scope, undefined, 0);
  call.caller = caller;
  call.guarded = caller._call.guarded;
  call.converted = caller._call.converted && !(caller instanceof ModelContext && caller._extra?.converting);
  const asked = frozenMessages(toMessages(messages as never));
  const parts = { model, systemPrompt, tools, settings, messages: asked };
  const ctx = new ModelContext(run, scope, parts, call);
  call.given = ctx._request;
  const written = (caller.state as Overlay).inner();
  ctx._state = written;
  const layers = run.plan.layers.model;
  const inside = layers.findIndex((layer) => layer.position > caller._position);
  const from = inside < 0 ? layers.length : inside;
  call.enter();
  caller._call.workBegins();
  let answered = false;
  try {
    const given = (await new Onion(layers, callModel).enter(from, ctx)) as ModelResponse;
    const response = call.guarded ? given : originalOf(given);
    call.check();
    // What the inner layers wrote to cells joins the writes of the caller, and is dropped with its attempt.
    (caller.state as Overlay).join(written);
    answered = true;
    return call.guarded ? (await run.judgements.response(response, ctx)).response : response;
  } catch (error) {
    if (isControl(error)) caller._cross(error, call.latchedBy);
    throw error;
  } finally {
    call.leave();
    caller._call.workEnded(answered);
  }
}
