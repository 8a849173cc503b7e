/** The AI SDK, with a language model of its own specification. */
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { jobsOf } from '../work/ai-sdk.mjs';
import { SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  '`generateText()`, or `streamText()` with `for await` over `fullStream`; validates with zod';

globalThis.AI_SDK_LOG_WARNINGS = false;

export const { turns, events, deltas } = jobsOf({
  version: 'v3',
  tool,
  generateText,
  streamText,
  options: (turns) => ({ system: SYSTEM_PROMPT, stopWhen: stepCountIs(turns + 1) }),
  partsOf: (result) => result.fullStream,
});
