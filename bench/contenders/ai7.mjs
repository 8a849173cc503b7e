/** The AI SDK of version 7, which needs a newer Node. Its stream of everything is called `stream`. */
import { generateText, isStepCount, streamText, tool } from '../node24/ai.mjs';
import { jobsOf } from '../work/ai-sdk.mjs';
import { SYSTEM_PROMPT } from '../work/tool.mjs';

export const what = '`streamText()` of `ai` 7 on Node 24 with `for await` over `stream`; validates with zod';

globalThis.AI_SDK_LOG_WARNINGS = false;

export const { turns, events, deltas } = jobsOf({
  version: 'v4',
  tool,
  generateText,
  streamText,
  options: (turns) => ({ instructions: SYSTEM_PROMPT, stopWhen: isStepCount(turns + 1) }),
  partsOf: (result) => result.stream,
});
