/** Allium on a language model of the AI SDK, through `fromAiSdk`. */
import { fromAiSdk } from '@allium/ai-sdk';
import { callingLanguageModel, talkingLanguageModel } from '../work/ai-sdk.mjs';
import { agentFor, readDeltas, readEvents } from './allium.mjs';

export const what =
  '`agent.stream()` read to its end with `for await` over every event; the model comes through `fromAiSdk()`';

export function events({ turns, version }) {
  return readEvents(agentFor(fromAiSdk(callingLanguageModel(version, turns)), turns));
}

export function deltas({ count, version }) {
  return readDeltas(agentFor(fromAiSdk(talkingLanguageModel(version, count)), 1));
}
