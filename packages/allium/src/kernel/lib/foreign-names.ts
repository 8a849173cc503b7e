/**
 * Names that other libraries use (AI SDK, LangChain, Mastra, OpenAI Agents, pi, Strands), and what to write here instead. An
 * unknown name is looked up here before its spelling is guessed.
 */

/** What to write instead, by the foreign name without dashes, underscores and capitals. */
export type Foreign = Readonly<Record<string, string>> | ((name: string) => string | undefined);

export function foreignName(table: Foreign, name: string): string | undefined {
  const key = flat(name);
  if (typeof table === 'function') return table(key);
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

function flat(name: string): string {
  return name.replace(/[-_]/g, '').toLowerCase();
}

/** Lines like `steps maxsteps → turns`. They are read when somebody uses a wrong name. */
export function foreignTable(lines: string): (name: string) => string | undefined {
  const read = (line: string) => {
    const [names = '', here = ''] = line.trim().split(' → ');
    return names.split(' ').map((name) => [name, here] as const);
  };
  let table: Map<string, string> | undefined;
  return (name) => {
    table ??= new Map(lines.trim().split('\n').flatMap(read));
    return table.get(name);
  };
}

/** Model settings, and other options of AI SDK calls. */
export const FOREIGN_SETTINGS = foreignTable(`
  maxtokens maxcompletiontokens → maxOutputTokens
  stop → stopSequences
  topk → provider: { <name>: { topK: … } }
  provideroptions modelkwargs additionalproperties extrabody → provider
  responseformat outputschema → responseSchema
  presencepenalty frequencypenalty reasoning reasoningeffort verbosity thinking thinkinglevel paralleltoolcalls → provider: { <name>: { … } }
  maxretries retry → retry() in middleware
  headers apikey baseurl → options of fromAiSdk( … ) or resolveModel( … )
`);

/** What was given in the place of a message, and what to do about it. */
export function foreignMessage(message: unknown): string {
  const { role, messages, prompt, parts } = Object(message) as Readonly<Record<string, unknown>>;
  if (role === 'system' || role === 'developer')
    return 'The system prompt is not a message here: write new Agent({ systemPrompt }).';
  if (role === undefined && messages !== undefined) return 'Pass the messages themselves: run(messages).';
  if (role === undefined && prompt !== undefined) return 'Pass the text itself: run(prompt).';
  if (parts !== undefined) return 'The text of a message goes into `content`.';
  return 'userMessage(text) makes a message.';
}

const WRAP = 'Wrap it: fromAiSdk(model) of "@allium/ai-sdk".';

/** Recognises what was passed instead of a model, and says what to do about it. */
export function foreignModel(model: unknown): string {
  if (typeof model === 'string')
    return ` A name alone is not a model: write resolveModel(${JSON.stringify(modelName(model))}) of "@allium/ai-sdk", or fromAiSdk( … ) with a model of the AI SDK.`;
  if (typeof model === 'function') return ` A provider has to be called with the name of a model. ${WRAP}`;
  if (typeof model !== 'object' || model === null) return '';
  if ('doStream' in model) return ` This is a model of the AI SDK. ${WRAP}`;
  if ('bindTools' in model || 'lc_namespace' in model)
    return ' This is a model of LangChain. Take the one of the AI SDK for the same provider: fromAiSdk( … ) of "@allium/ai-sdk".';
  if ('chat' in model || 'messages' in model || 'responses' in model)
    return ' This is the client of a provider. Take the AI SDK\'s model for it: fromAiSdk( … ) of "@allium/ai-sdk".';
  return '';
}

const PROVIDERS: readonly (readonly [name: string, models: RegExp])[] = [
  ['openai', /^(?:openai:|(?=gpt-|chatgpt-|o\d))/],
  ['anthropic', /^(?:anthropic:|(?=claude-))/],
  ['google', /^(?:google(?:[-_]genai)?:|(?=gemini-))/],
];

/** The name that `resolveModel` takes for a model that others call `openai:gpt-5` or `gpt-5`. */
function modelName(given: string): string {
  if (given.includes('/')) return given;
  const [provider, before] = PROVIDERS.find(([, models]) => models.test(given)) ?? ['<provider>', ''];
  return `${provider}/${given.replace(before, '')}`;
}
