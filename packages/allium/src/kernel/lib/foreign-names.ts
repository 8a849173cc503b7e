/**
 * What other libraries (AI SDK, LangChain, Mastra, OpenAI Agents, pi, Strands) call things, and what that is here. Data
 * only: whoever checks names looks an unknown one up before it guesses from the spelling.
 */

/** By the foreign name without dashes, underscores and capitals: what to write instead. */
export type Foreign = Readonly<Record<string, string>>;

export function foreignName(table: Foreign, name: string): string | undefined {
  const flat = name.replace(/[-_]/g, '').toLowerCase();
  return Object.hasOwn(table, flat) ? table[flat] : undefined;
}

const PROMPT = 'systemPrompt';
const TURNS = 'limits: { turns: … }';
const MIDDLEWARE = 'middleware: [ … ]';
const inSettings = (name: string): string => `settings: { ${name}: … }`;

/** Of models, and of what an AI SDK call takes beside its messages. */
export const FOREIGN_SETTINGS: Foreign = {
  maxtokens: 'maxOutputTokens',
  maxcompletiontokens: 'maxOutputTokens',
  stop: 'stopSequences',
  topk: 'provider: { <name>: { topK: … } }',
  provideroptions: 'provider',
  modelkwargs: 'provider',
  responseformat: 'responseSchema',
};

export const FOREIGN_LIMITS: Foreign = {
  steps: 'turns',
  maxsteps: 'turns',
  maxturns: 'turns',
  maxiterations: 'turns',
  maxtoolcalls: 'toolCalls',
  maxtokens: 'tokens',
  maxcost: 'costUsd',
  cost: 'costUsd',
  budget: 'costUsd',
  timeout: 'timeoutMs',
};

/** What both an agent and a run are asked for elsewhere. */
const SHARED: Foreign = {
  maxsteps: TURNS,
  stopwhen: `${TURNS}, or the hook shouldStopAfterTurn`,
  maxiterations: TURNS,
  maxturns: TURNS,
  recursionlimit: TURNS,
  timeout: 'limits: { timeoutMs: … }',
  hooks: MIDDLEWARE,
  callbacks: `observers, or ${MIDDLEWARE}`,
  guardrails: `${MIDDLEWARE}, with a guard`,
};

export const FOREIGN_AGENT: Foreign = {
  ...SHARED,
  system: PROMPT,
  instructions: PROMPT,
  prompt: PROMPT,
  systemmessage: PROMPT,
  systeminstruction: PROMPT,
  systeminstructions: PROMPT,
  llm: 'model',
  languagemodel: 'model',
  temperature: inSettings('temperature'),
  topp: inSettings('topP'),
  seed: inSettings('seed'),
  toolchoice: inSettings('toolChoice'),
  maxtokens: inSettings('maxOutputTokens'),
  maxoutputtokens: inSettings('maxOutputTokens'),
  stopsequences: inSettings('stopSequences'),
  modelsettings: 'settings',
  provideroptions: inSettings('provider'),
  responseformat: 'structuredOutput({ schema }) in middleware',
  output: 'structuredOutput({ schema }) in middleware',
  outputtype: 'structuredOutput({ schema }) in middleware',
  outputschema: 'structuredOutput({ schema }) in middleware',
  maxretries: 'retry() in middleware',
  inputguardrails: `${MIDDLEWARE}, with a guard on 'input'`,
  outputguardrails: `${MIDDLEWARE}, with a guard on 'output'`,
  inputprocessors: MIDDLEWARE,
  outputprocessors: MIDDLEWARE,
  preparestep: `${MIDDLEWARE}, with beforeModel`,
  checkpointer: 'store',
  sessionmanager: 'store',
  memory: 'store, or memoryRecall() in middleware',
  handoffs: 'tools: [other.asTool( … )], or subagents() in middleware',
  subagents: 'subagents() in middleware',
  interrupton: 'approval() in middleware',
  functions: 'tools',
  activetools: 'toolSelector() in middleware',
  id: 'name',
  initialstate: 'systemPrompt, model and tools as options of their own',
  getsteeringmessages: 'session.steer( … )',
  getfollowupmessages: 'session.followUp( … )',
  conversationmanager: 'historyTruncator() or compaction() in middleware',
  callbackhandler: 'observers',
  verbose: 'consoleLogger() in middleware',
};

export const FOREIGN_RUN: Foreign = {
  ...SHARED,
  abortsignal: 'signal',
  threadid: 'agent.session(id).run( … )',
  sessionid: 'agent.session(id).run( … )',
  conversationid: 'agent.session(id).run( … )',
  session: 'agent.session(id).run( … )',
  thread: 'agent.session(id).run( … )',
  resourceid: 'tenant',
  userid: 'tenant',
  context: 'metadata',
  configurable: 'metadata',
  runtimecontext: 'metadata',
  stream: 'agent.stream( … )',
  tools: 'new Agent({ tools }), or middleware: [{ tools }]',
  model: 'new Agent({ model }), or middleware that sets ctx.model',
  system: 'new Agent({ systemPrompt })',
  instructions: 'new Agent({ systemPrompt })',
  temperature: 'new Agent({ settings: { temperature } })',
  messages: 'the first argument: agent.run(messages)',
};

export const FOREIGN_TOOL: Foreign = {
  inputschema: 'input',
  parameters: 'input',
  schema: 'input',
  args: 'input',
  argsschema: 'input',
  outputschema: 'what `execute` returns: it needs no schema',
  handler: 'execute',
  invoke: 'execute',
  run: 'execute',
  func: 'execute',
  callback: 'execute',
  id: 'name',
  needsapproval: 'approval() in the middleware of the agent',
  requireapproval: 'approval() in the middleware of the agent',
  returndirect: 'toolResult({ content, terminate: true }) as what `execute` returns',
  timeout: 'timeoutMs',
  executionmode: 'sequential: true',
};

/** Members of a middleware. */
export const FOREIGN_HOOKS: Foreign = {
  // LangChain
  wrapmodelcall: 'wrapModel',
  wraptoolcall: 'wrapTool',
  beforeagent: 'beforeRun',
  afteragent: 'afterRun',
  stateschema: 'state',
  contextschema: 'runOptions',
  // AI SDK
  wrapgenerate: 'wrapModel',
  wrapstream: 'wrapModel',
  transformparams: 'beforeModel',
  preparestep: 'beforeModel',
  onstepfinish: 'afterModel',
  // Mastra
  processinput: 'acceptMessage',
  processinputstep: 'transformContext',
  processoutputstream: 'guard',
  processoutputresult: 'afterModelResponse',
  processoutputstep: 'afterModelResponse',
  // OpenAI Agents
  onagentstart: 'beforeRun',
  onagentend: 'afterRun',
  onllmstart: 'beforeModel',
  onllmend: 'afterModel',
  ontoolend: 'afterTool',
  // pi
  beforeagentstart: 'beforeRun',
  // Strands
  beforeinvocation: 'beforeRun',
  afterinvocation: 'afterRun',
  beforemodelcall: 'beforeModel',
  aftermodelcall: 'afterModel',
  // Spine and Ravi
  onrunstart: 'beforeRun',
  onmodelstart: 'beforeModel',
  ontoolstart: 'beforeTool',
  callnext: 'process',
};

const WRAP = 'Wrap it: fromAiSdk(model) of "@allium/ai-sdk".';

/** What was given in the place of a model, and what to do about it. */
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
