/** The `ai` of this folder: a package is looked up from the file that imports it. */
export { generateText, isStepCount, streamText, tool } from 'ai';
