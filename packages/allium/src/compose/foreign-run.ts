/** What other libraries call the options of runs and their limits. */

import { foreignTable } from '../kernel/lib/foreign-names.js';

export const FOREIGN_LIMITS = foreignTable(`
  steps maxsteps maxturns maxiterations → turns
  maxtoolcalls → toolCalls
  maxtokens → tokens
  maxcost cost budget usd maxusd → costUsd
  timeout maxduration → timeoutMs
  maxdepth → depth
`);

/** Options that other libraries have both for agents and for runs. */
export const FOREIGN_SHARED = `
  maxsteps maxiterations maxturns recursionlimit → limits: { turns: … }
  stopwhen → limits: { turns: … }, or the hook shouldStopAfterTurn
  timeout maxduration → limits: { timeoutMs: … }
  hooks plugins processors → middleware: [ … ]
  onstepfinish onfinish onchunk onevent printer onstepend → observers
  telemetry experimentaltelemetry tracing tracingdisabled traceattributes workflowname tracer → observability() in middleware
  callbacks → observers, or middleware: [ … ]
  guardrails → middleware: [ … ], with a guard
  maxtoolcalls → limits: { toolCalls: … }
  onend oncomplete onabort → middleware: [ … ] with afterRun
  onerror → middleware: [ … ] with onError
  inputguardrails → middleware: [ … ], with a guard on 'input'
  outputguardrails → middleware: [ … ], with a guard on 'output'
  preparestep preparecall preparenextturn callmodelinputfilter → middleware: [ … ], with beforeModel
  transform experimentaltransform → smoothStream() in middleware, or a guard
  repairtoolcall experimentalrepairtoolcall → middleware: [ … ] with resolveToolCall
  maxretries retries retry retrypolicy maxprocessorretries maxretrydelayms → retry() in middleware
  structuredoutputschema structuredoutputmodel experimentaloutput responseschema → structuredOutput({ schema }) in middleware
  requiretoolapproval toolapproval needsapproval interrupton interruptbefore interruptafter → approval() in middleware
  activetools → toolSelector() in middleware
  toolerrorformatter → toolErrors() in middleware
  cache → cache() in middleware
  toolcallconcurrency parallelism → toolExecution of the agent, and concurrency of a tool
  toolsets clienttools functions → tools of the agent
  mcpservers mcp mcpconfig → mcp( … ) of "@allium/mcp" in middleware
`;

export const FOREIGN_RUN = foreignTable(`${FOREIGN_SHARED.trim()}
  abortsignal cancelsignal → signal
  threadid sessionid conversationid session thread previousresponseid → agent.session(id).run( … )
  resourceid userid resource user → tenant
  context configurable config runtimecontext requestcontext toolscontext deps experimentalcontext runconfig state tags → metadata
  stream streammode → agent.stream( … )
  tools → new Agent({ tools }), or middleware: [{ tools }]
  model → new Agent({ model }), or middleware that sets ctx.model
  system instructions systemprompt → new Agent({ systemPrompt })
  temperature → new Agent({ settings: { temperature } })
  toolchoice modelsettings maxtokens maxoutputtokens provideroptions settings → new Agent({ settings })
  responseformat output outputtype structuredoutput schema → structuredOutput({ schema }) in middleware
  memory checkpointer store → new Agent({ store })
  messages prompt input → the first argument: agent.run(input)
  images files attachments experimentalattachments → parts of the input: agent.run([{ type: 'image', … }])
  resume command resumedata → agent.session(id).resume( … )
`);
