/** What other libraries call the options of an agent, and what to write here instead. */

import { FOREIGN_SHARED } from '../compose/foreign-run.js';
import { foreignTable } from '../kernel/lib/foreign-names.js';

export const FOREIGN_AGENT = foreignTable(`${FOREIGN_SHARED.trim()}
  system instructions prompt systemmessage systeminstruction systeminstructions → systemPrompt
  llm languagemodel modelprovider provider streamfn streamfunction getapikey → model
  temperature → settings: { temperature: … }
  thinkinglevel reasoningeffort provideroptions thinkingbudgets reasoning → settings: { provider: … }
  topp → settings: { topP: … }
  seed → settings: { seed: … }
  toolchoice → settings: { toolChoice: … }
  maxtokens maxoutputtokens → settings: { maxOutputTokens: … }
  stopsequences → settings: { stopSequences: … }
  modelsettings → settings
  responseformat output outputtype outputschema structuredoutput schema → structuredOutput({ schema }) in middleware
  inputprocessors outputprocessors → middleware: [ … ]
  checkpointer sessionmanager storage saver → store
  memory → store, or memoryRecall() in middleware
  handoffs → tools: [other.asTool( … )], or subagents() in middleware
  subagents agents → subagents() in middleware
  abortsignal signal → agent.run( … , { signal })
  resettoolchoice → toolChoiceTurns
  allowedtools disallowedtools → toolSelector() in middleware, or toolPolicy() of "@allium/guardrails"
  beforemodel aftermodel beforetool aftertool beforerun afterrun wrapmodel wraptool wraprun wrapmodelcall wraptoolcall beforeagent afteragent → middleware: [ … ]
  messages → the first argument of run(): agent.run(messages)
  stateschema → state, or the state of a middleware
  contextschema runtimecontext requestcontext toolscontext calloptionsschema experimentalcontext context → metadata of a run, or runOptions of a middleware
  id agentid → name
  sessionid session threadid thread conversationid resourceid → agent.session(id).run( … )
  headers apikey baseurl → options of fromAiSdk( … ) or resolveModel( … )
  initialstate → systemPrompt, model and tools as options of their own
  getsteeringmessages → session.steer( … )
  getfollowupmessages → session.followUp( … )
  conversationmanager contextmanager summarization → historyTruncator() or compaction() in middleware
  callbackhandler → observers
  verbose debug → consoleLogger() in middleware
  topk → settings: { provider: { <name>: { topK: … } } }
  defaultoptions defaultgenerateoptions defaultstreamoptions → settings, limits and middleware, as options of their own
  workflows → subagents() in middleware, or tools: [other.asTool( … )]
  handoffdescription description → description of asTool( … ), which makes a tool of this agent
  toolusebehavior → toolResult({ content, terminate: true }) as what a tool returns
  steeringmode → queue: { steering: … }
  followupmode → queue: { followUps: … }
`);
