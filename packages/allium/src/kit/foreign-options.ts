/** What other libraries call the options of middleware. */
import { type Foreign, foreignTable } from '../kernel/lib/foreign-names.js';

/**
 * Options of middleware: what others call them → the names they may have here. The first that a factory has is meant.
 */
const FOREIGN_OPTIONS = foreignTable(`
  retries maxretries maxattempts tries retrycount → attempts maxRepairs
  backofffactor backoff multiplier exponentialbase backoffrate → factor
  initialdelay initialdelayms basedelay basedelayms basems delay mindelay minwait intervalseconds → minDelayMs delayMs
  maxdelay maxbackoff maxwait → maxDelayMs maxWaitMs
  retryif shouldretry isretryable retrycondition retryonexceptions → retryOn
  onfailure → onExceed onFail
  ttl maxage expiresin expiration ttlseconds → ttlMs
  maxsize size capacity lrusize → maxEntries max
  timeout timeoutms deadline ms requesttimeout defaulttooltimeout sessiontimeout → modelMs toolMs timeoutMs
  firsttokentimeout timetofirsttoken → firstTokenMs
  idletimeout chunktimeout → idleMs
  interval window duration per period windowms intervalms → perMs windowMs
  requests maxrequests rate rpm requestsperminute requestspersecond → limit
  concurrency maxconcurrent maxconcurrency maxparallel → max maxConcurrent
  failurethreshold threshold maxfailures volumethreshold → failures
  resettimeout cooldown recoverytimeout opentimeout → cooldownMs
  runlimit limit maxcalls → modelCalls toolCalls turns max
  maxtoolcalls → toolCalls
  toolname → perTool
  maxtokens tokenlimit tokenbudget → tokens
  maxusd maxcost maxcostusd costusd costlimit dollars → usd
  maxsteps maxiterations recursionlimit steps → turns maxTurns
  exitbehavior onlimit onlimitexceeded → onExceed
  fallbacks fallbackmodels firstmodel → models
  llm languagemodel model classifier judge → model summaryModel evaluator defaultModel
  trigger triggertokens edits maxtokensbeforesummary maxtokensbeforecompact tokenthreshold → maxTokens clearToolResultsAfterTokens
  keep messagestokeep keeplast keeprecent keepmessages keeprecenttokens → keepTailTokens keep maxMessages
  mincompactmessages → minMessages
  eventmapper → mapEvent
  eventhandler → onEvent
  inheritedmiddleware → inheritMiddleware
  trimtokenstosummarize → maxSummaryInputTokens
  cleartoolinputs → clearInputs
  excludetools excludedtoolnames excludedtools protectedtools exclude → keepTools excludeTools ignore except
  prompt systemprompt instructions summaryprompt → prompt summaryPrompt policy
  chunking chunk splitby → by
  delayinms → delayMs
  selectedtools maxselected max → maxTools
  allowlist whitelist allowed alloweddecisions → allow allowHosts decisions policy
  denylist blocklist blacklist blocked banned → deny keywords
  detectors detector entities piitypes piitype detect → types recognize
  mode strategy redaction → strategy action mode
  applytoinput applytooutput applytotoolresults → on
  interrupton toolnames tools require → tools policy on only
  outputschema responseformat outputtype schema zodschema → schema
  namespace prefix → key
  storage backend keyv checkpointer → store
  logger log writer destination output → sink write schema
  subagents agents specs handoffs → agents
  path directory folder folders → dir roots
  id label servername → name
  transport serverurl endpoint baseurl address → url
  requestinit authprovider auth → headers
  toolfilter allowedtools enabledtools includetools → only
  disabledtools disallowedtools blockedtools → except
  toolnameprefix additionaltoolnameprefix prefixtoolnamewithservername → prefix
  elicitationhandler onelicitation → elicitation
  samplinghandler onsampling → sampling
  environment environmentvariables → env
`);

/** The names other libraries use for the options of a middleware with these fields. */
export function foreignOptions(fields: Readonly<Record<string, unknown>>): Foreign {
  return (name) =>
    FOREIGN_OPTIONS(name)
      ?.split(' ')
      .find((one) => Object.hasOwn(fields, one));
}
