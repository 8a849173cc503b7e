/** The laws of model adapters, in the order they are tried. */
import { callIds, text, thinking, toolArguments, toolCall } from './answer-laws.js';
import { abort, concurrentCalls, errorsReject, requestUnchanged } from './call-laws.js';
import type { ModelCheck } from './context.js';
import { finish, streamShape, usage, validParts } from './stream-laws.js';

const LAWS = [
  streamShape,
  validParts,
  finish,
  usage,
  abort,
  errorsReject,
  concurrentCalls,
  requestUnchanged,
  text,
  toolCall,
  toolArguments,
  callIds,
  thinking,
] as const;

export type ModelLaw = (typeof LAWS)[number]['law'];

export const MODEL_LAWS: readonly ModelCheck<ModelLaw>[] = LAWS;
