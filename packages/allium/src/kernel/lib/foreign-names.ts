/**
 * Names that other libraries use (AI SDK, LangChain, Mastra, OpenAI Agents, pi, Strands), and what to write here instead. An
 * unknown name is looked up here before its spelling is guessed.
 */

/** What to write instead, by the foreign name without dashes, underscores and capitals. */
export type Foreign = Readonly<Record<string, string>>;

export function foreignName(table: Foreign, name: string): string | undefined {
  const flat = name.replace(/[-_]/g, '').toLowerCase();
  return Object.hasOwn(table, flat) ? table[flat] : undefined;
}

/** Lines like `steps maxsteps → turns`. */
function table(lines: string): Foreign {
  const entries = lines
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [names = '', here = ''] = line.trim().split(' → ');
      return names.split(' ').map((name) => [name, here]);
    });
  return Object.fromEntries(entries);
}

/** Model settings, and other options of AI SDK calls. */
export const FOREIGN_SETTINGS: Foreign = table(`
  maxtokens maxcompletiontokens → maxOutputTokens
  stop → stopSequences
  topk → provider: { <name>: { topK: … } }
  provideroptions modelkwargs → provider
  responseformat → responseSchema
`);

export const FOREIGN_LIMITS: Foreign = table(`
  steps maxsteps maxturns maxiterations → turns
  maxtoolcalls → toolCalls
  maxtokens → tokens
  maxcost cost budget → costUsd
  timeout → timeoutMs
`);

/** Options that other libraries have both for agents and for runs. */
const SHARED = `
  maxsteps maxiterations maxturns recursionlimit → limits: { turns: … }
  stopwhen → limits: { turns: … }, or the hook shouldStopAfterTurn
  timeout → limits: { timeoutMs: … }
  hooks plugins processors → middleware: [ … ]
  onstepfinish onfinish onchunk → observers
  telemetry experimentaltelemetry tracing → observability() in middleware
  callbacks → observers, or middleware: [ … ]
  guardrails → middleware: [ … ], with a guard
`;

export const FOREIGN_AGENT: Foreign = table(`${SHARED.trim()}
  system instructions prompt systemmessage systeminstruction systeminstructions → systemPrompt
  llm languagemodel → model
  temperature → settings: { temperature: … }
  thinkinglevel reasoningeffort → settings: { provider: … }
  topp → settings: { topP: … }
  seed → settings: { seed: … }
  toolchoice → settings: { toolChoice: … }
  maxtokens maxoutputtokens → settings: { maxOutputTokens: … }
  stopsequences → settings: { stopSequences: … }
  modelsettings → settings
  provideroptions → settings: { provider: … }
  responseformat output outputtype outputschema structuredoutput schema → structuredOutput({ schema }) in middleware
  maxretries → retry() in middleware
  inputguardrails → middleware: [ … ], with a guard on 'input'
  outputguardrails → middleware: [ … ], with a guard on 'output'
  inputprocessors outputprocessors → middleware: [ … ]
  preparestep → middleware: [ … ], with beforeModel
  checkpointer sessionmanager → store
  memory → store, or memoryRecall() in middleware
  handoffs → tools: [other.asTool( … )], or subagents() in middleware
  subagents agents → subagents() in middleware
  interrupton → approval() in middleware
  functions → tools
  activetools → toolSelector() in middleware
  mcpservers → mcp( … ) of "@allium/mcp" in middleware
  abortsignal signal → agent.run( … , { signal })
  resettoolchoice → toolChoiceTurns
  messages → the first argument of run(): agent.run(messages)
  stateschema → state, or the state of a middleware
  contextschema → metadata of a run, or runOptions of a middleware
  id → name
  initialstate → systemPrompt, model and tools as options of their own
  getsteeringmessages → session.steer( … )
  getfollowupmessages → session.followUp( … )
  conversationmanager → historyTruncator() or compaction() in middleware
  callbackhandler → observers
  verbose → consoleLogger() in middleware
`);

export const FOREIGN_RUN: Foreign = table(`${SHARED.trim()}
  abortsignal → signal
  threadid sessionid conversationid session thread → agent.session(id).run( … )
  resourceid userid → tenant
  context configurable config runtimecontext requestcontext deps → metadata
  stream → agent.stream( … )
  tools → new Agent({ tools }), or middleware: [{ tools }]
  model → new Agent({ model }), or middleware that sets ctx.model
  system instructions → new Agent({ systemPrompt })
  temperature → new Agent({ settings: { temperature } })
  toolchoice modelsettings maxtokens maxoutputtokens provideroptions → new Agent({ settings })
  responseformat output outputtype structuredoutput schema → structuredOutput({ schema }) in middleware
  memory checkpointer → new Agent({ store })
  messages prompt input → the first argument: agent.run(input)
`);

export const FOREIGN_TOOL: Foreign = table(`
  inputschema parameters schema args argsschema → input
  outputschema returns responseschema → output
  tomodeloutput → toolResult({ content, details }) as what execute returns
  handler invoke run func callback → execute
  id → name
  needsapproval requireapproval → approval() in the middleware of the agent
  returndirect → toolResult({ content, terminate: true }) as what execute returns
  timeout → timeoutMs
  executionmode → sequential: true
`);

/** Members of a middleware. */
export const FOREIGN_HOOKS: Foreign = table(`
  wrapmodelcall wrapgenerate wrapstream → wrapModel
  wraptoolcall → wrapTool
  beforeagent onagentstart beforeagentstart beforeinvocation onrunstart → beforeRun
  afteragent onagentend afterinvocation → afterRun
  stateschema → state
  contextschema → runOptions
  transformparams preparestep onllmstart beforemodelcall onmodelstart → beforeModel
  onstepfinish onllmend aftermodelcall → afterModel
  processinput → acceptMessage
  processinputstep → transformContext
  processoutputstream → guard
  processoutputresult processoutputstep → afterModelResponse
  ontoolend → afterTool
  ontoolstart → beforeTool
  callnext → process
`);

/** What was given in the place of a message, and what to do about it. */
export function foreignMessage(message: unknown): string {
  const { role, messages, prompt, parts } = Object(message) as Readonly<Record<string, unknown>>;
  if (role === 'system' || role === 'developer')
    return 'The system prompt is not a message here: write new Agent({ systemPrompt }).';
  if (role === undefined && messages !== undefined) return 'Pass the messages themselves: run(messages).';
  if (role === undefined && prompt !== undefined) return 'Pass the text itself: run(prompt).';
  if (parts !== undefined) return 'What a message says is its `content`.';
  return 'userMessage(text) makes a message.';
}

const WRAP = 'Wrap it: fromAiSdk(model) of "@allium/ai-sdk".';

/** Recognises what was passed instead of a model, and says what to do about it. */
export function foreignModel(model: unknown): string {
  if (typeof model === 'string')
    return ` A name is not enough here: write resolveModel(${JSON.stringify(model)}) of "@allium/ai-sdk", or fromAiSdk( … ) with a model of the AI SDK.`;
  if (typeof model === 'function') return ` A provider has to be called with the name of a model. ${WRAP}`;
  if (typeof model !== 'object' || model === null) return '';
  if ('doStream' in model) return ` This is a model of the AI SDK. ${WRAP}`;
  if ('bindTools' in model || 'lc_namespace' in model)
    return ' This is a model of LangChain. Take the one of the AI SDK for the same provider: fromAiSdk( … ) of "@allium/ai-sdk".';
  if ('chat' in model || 'messages' in model || 'responses' in model)
    return ' This is the client of a provider. Take the AI SDK\'s model for it: fromAiSdk( … ) of "@allium/ai-sdk".';
  return '';
}
