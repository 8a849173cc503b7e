/** Written by scripts/middleware-table.mjs from the folders of src/middleware. Do not edit. */

import type { JsonSchema } from '../kernel/messages/model.js';
import type { Middleware } from '../kernel/protocol/middleware.js';

export interface MiddlewareModule {
  /** Imports the module and gives its factory. */
  readonly load: () => Promise<(options: never) => Middleware>;
  /** Of its options, for editors: the factory is what judges them. */
  readonly shape: JsonSchema;
}

/** An option that is code: a module of the user's, and the export in it. */
const code = {
  type: 'object',
  properties: { import: { type: 'string' }, name: { type: 'string' } },
  required: ['import'],
  additionalProperties: false,
} as const;

export const MIDDLEWARE: Readonly<Record<string, MiddlewareModule>> = {
  approval: {
    load: async () => (await import('../middleware/approval/index.js')).approval,
    shape: {
      type: 'object',
      properties: {
        policy: {
          description:
            'Who decides about a call. A person is asked about tools that it does not name. Default: every call is asked about',
          anyOf: [code],
        },
        onRequest: {
          description:
            'Answers right away, without suspending the run; returning undefined suspends it after all.',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'audit-log': {
    load: async () => (await import('../middleware/audit-log/index.js')).auditLog,
    shape: {
      type: 'object',
      properties: {
        sink: {
          description: 'Takes the lines: a function, or a file. The run waits for each line to be written.',
          anyOf: [code],
        },
        key: {
          description:
            'Seals the lines (HMAC-SHA256). Without it they are only hashed, and anybody who can write the log can redo the hashes.',
          anyOf: [code],
        },
        content: {
          description: 'Log the text of answers, arguments and results; `false` leaves it out. Default: true',
          type: 'boolean',
        },
        name: {
          description: "Its name; give each its own when a list has two. Default: 'audit-log'",
          type: 'string',
        },
      },
      required: ['sink'],
      additionalProperties: false,
    },
  },
  budget: {
    load: async () => (await import('../middleware/budget/index.js')).budget,
    shape: {
      type: 'object',
      properties: {
        usd: { description: 'US dollars: a number ≥ 0. Default: no limit', type: 'number' },
        tokens: {
          description: 'Tokens, input and output together: a number ≥ 0. Default: no limit',
          type: 'number',
        },
        per: {
          description:
            "Who shares the budget. A function names the account, for example a tenant and a month. Default: 'run'",
          anyOf: [{ enum: ['run', 'session', 'tenant'] }, code],
        },
        store: {
          description:
            'Where amounts are kept. Default: with the run or session; for tenants and your own accounts, in the memory of this process',
          anyOf: [code],
        },
        priceOf: {
          description: 'Prices for models that have none. `usd` needs the price of every model.',
          anyOf: [code],
        },
        subagents: {
          description:
            "How sub-agents without this budget are treated: `limit` stops them when it is used up, `count` only books what they used. Default: 'limit'",
          enum: ['limit', 'count'],
        },
        name: {
          description:
            "Its name, part of the keys in `store`; give each its own when a list has two `per` session. Default: 'budget'",
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  cache: {
    load: async () => (await import('../middleware/cache/index.js')).cache,
    shape: {
      type: 'object',
      properties: {
        store: { description: 'Default: a store in memory of `maxEntries` answers', anyOf: [code] },
        ttlMs: { description: 'Milliseconds an answer is good for. Default: forever', type: 'number' },
        maxEntries: {
          description:
            'Answers the store in memory keeps; beyond that it drops the least recently used. Default: 1000',
          type: 'number',
        },
        scope: {
          description: "Who shares answers: the runs of a tenant, of a session, or all. Default: 'tenant'",
          anyOf: [code],
        },
        key: {
          description:
            'What makes two requests the same, within the scope; undefined skips the cache for this call. Default: cacheKey',
          anyOf: [code],
        },
        maxWaitMs: {
          description:
            'Milliseconds to wait for the same request of another run before making the call anyway. It does not wait for a run whose stream nobody reads. Default: 60_000',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'call-limits': {
    load: async () => (await import('../middleware/call-limits/index.js')).callLimits,
    shape: {
      type: 'object',
      properties: {
        modelCalls: {
          description:
            'Model calls of a run that pass through here, not counting those of other middleware: an integer ≥ 1. Default: no limit',
          type: 'number',
        },
        toolCalls: {
          description: 'Tool calls of a run, all tools together: an integer ≥ 0. Default: no limit',
          type: 'number',
        },
        perTool: {
          description: 'Calls of a run by tool name: integers ≥ 0. Default: no limit',
          type: 'object',
          additionalProperties: { type: 'number' },
        },
        onExceed: {
          description:
            "`stop` ends the run; `tell-model` refuses the call and lets the model go on without it. Default: 'stop'",
          enum: ['stop', 'tell-model'],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'circuit-breaker': {
    load: async () => (await import('../middleware/circuit-breaker/index.js')).circuitBreaker,
    shape: {
      type: 'object',
      properties: {
        failures: { description: 'Failures in a row that open the circuit. Default: 5', type: 'number' },
        windowMs: {
          description: 'Milliseconds after which a failure is forgotten. Default: 60_000',
          type: 'number',
        },
        cooldownMs: {
          description: 'Milliseconds the circuit stays open; then one call may try. Default: 30_000',
          type: 'number',
        },
        on: { description: "What is watched. Default: 'model'", enum: ['model', 'tool'] },
        key: {
          description:
            'Which circuit a call belongs to. Default: `provider/id` of the model, or the name of the tool',
          anyOf: [code],
        },
        failsOn: {
          description:
            'Which errors count: a function, or an error class. Never asked about stops, suspensions and aborts. Default: isTransient for models, all for tools',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  compaction: {
    load: async () => (await import('../middleware/compaction/index.js')).compaction,
    shape: {
      type: 'object',
      properties: {
        summaryModel: { description: 'Writes the summaries.', anyOf: [code] },
        maxTokens: {
          description:
            'Compact a request that has this many tokens: an integer ≥ 1. Leave room for the answer.',
          type: 'number',
        },
        keepTailTokens: {
          description:
            'Tokens of the latest messages that are never summarised: an integer ≥ 0. Half of `maxTokens` if it is not below that. Default: 8000',
          type: 'number',
        },
        maxSummaryTokens: {
          description:
            'The longest summary to ask for, in tokens: an integer ≥ 1. Default: 15 % of what is summarised, from 1024 to 4096',
          type: 'number',
        },
        minMessages: {
          description: 'Summarise only if at least this many messages would go: an integer ≥ 1. Default: 4',
          type: 'number',
        },
        pruneToolOutputs: {
          description: 'Show the summariser only the length of results over 120 characters. Default: true',
          type: 'boolean',
        },
        summaryPrompt: { description: "The summariser's system prompt.", type: 'string' },
        existingSummarySuffix: {
          description: 'Added to the prompt when there is already a summary to merge with.',
          type: 'string',
        },
        tokenCounter: {
          description:
            'Counts the tokens of a text. Default: `gpt-tokenizer` or `tokenx` if installed, else an estimate',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['summaryModel', 'maxTokens'],
      additionalProperties: false,
    },
  },
  concurrency: {
    load: async () => (await import('../middleware/concurrency/index.js')).concurrency,
    shape: {
      type: 'object',
      properties: {
        max: { description: 'Calls that may run at once, for each key.', type: 'number' },
        key: { description: 'Whose limit it is. Default: the tenant', anyOf: [code] },
        maxWaitMs: {
          description: 'Milliseconds a call may wait for its turn; 0 refuses at once. Default: Infinity',
          type: 'number',
        },
        scope: { description: "What is counted. Default: 'model'", enum: ['model', 'run', 'tool'] },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['max'],
      additionalProperties: false,
    },
  },
  'console-logger': {
    load: async () => (await import('../middleware/console-logger/index.js')).consoleLogger,
    shape: {
      type: 'object',
      properties: {
        level: {
          description:
            "`error`: failures only; `info`: also one line per call; `debug`: also arguments and text. Default: 'info'",
          enum: ['error', 'info', 'debug'],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'content-truncator': {
    load: async () => (await import('../middleware/content-truncator/index.js')).contentTruncator,
    shape: {
      type: 'object',
      properties: {
        maxChars: {
          description:
            'Characters of text a message or result may have, the note about the cut included: an integer ≥ 100. Default: 50_000',
          type: 'number',
        },
        on: {
          description:
            '`model` limits user messages and results in requests, `tool` limits the results that go into the history. Default: both',
          type: 'array',
          items: { enum: ['model', 'tool'] },
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'context-editing': {
    load: async () => (await import('../middleware/context-editing/index.js')).contextEditing,
    shape: {
      type: 'object',
      properties: {
        clearToolResultsAfterTokens: {
          description:
            'Clear old results once a request has this many tokens: an integer ≥ 0. Default: 100_000',
          type: 'number',
        },
        keep: {
          description: 'How many of the latest results stay: an integer ≥ 0. Default: 3',
          type: 'number',
        },
        tokenCounter: {
          description:
            'Counts the tokens of a text. Default: `gpt-tokenizer` or `tokenx` if installed, else an estimate',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'cost-tracking': {
    load: async () => (await import('../middleware/cost-tracking/index.js')).costTracking,
    shape: {
      type: 'object',
      properties: {
        prices: {
          description:
            "US dollars per million tokens: by `provider/id` or `id`, or a function. Models not listed here cost what their own `price` says. Default: a model's own `price`, else the table of `@pydantic/genai-prices`",
          anyOf: [
            {
              type: 'object',
              additionalProperties: { type: 'object', additionalProperties: { type: 'number' } },
            },
            code,
          ],
        },
        onCost: {
          description: 'Called after each model call, and awaited. If it throws, the run fails.',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'deferred-tools': {
    load: async () => (await import('../middleware/deferred-tools/index.js')).deferredTools,
    shape: {
      type: 'object',
      properties: {
        groups: {
          description: 'The groups; each tool may be in one group only.',
          type: 'array',
          items: code,
        },
        strategy: {
          description:
            "`dispatch`: what the model sees never changes; it calls loaded tools through `deferred_tool_call`. `inject`: loaded tools are added to the tools of the request. Default: 'dispatch'",
          enum: ['dispatch', 'inject'],
        },
        maxSessions: {
          description:
            'Sessions whose loaded tools are kept in memory; beyond that, loaders run again: an integer ≥ 1. Default: 1000',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['groups'],
      additionalProperties: false,
    },
  },
  fallback: {
    load: async () => (await import('../middleware/fallback/index.js')).fallback,
    shape: {
      type: 'object',
      properties: {
        models: {
          description: 'Asked in order when the model of the call fails. At least one, each once.',
          type: 'array',
          items: code,
        },
        on: {
          description:
            'Which errors are worth another model: a function, or an error class. Never asked about stops, suspensions and aborts. Default: mayFallBack',
          anyOf: [code],
        },
        sticky: {
          description: 'Stay with the new model for the rest of the run. Default: false',
          type: 'boolean',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['models'],
      additionalProperties: false,
    },
  },
  'file-validator': {
    load: async () => (await import('../middleware/file-validator/index.js')).fileValidator,
    shape: {
      type: 'object',
      properties: {
        roots: {
          description: "Folders that paths must stay inside. A model's relative paths start from the first.",
          type: 'array',
          items: { type: 'string' },
        },
        extensions: {
          description: 'Endings that files may have, such as `.md`; case makes no difference. Default: any',
          type: 'array',
          items: { type: 'string' },
        },
        maxBytes: {
          description: 'The largest size of an existing file, in bytes: an integer ≥ 0. Default: any number',
          type: 'number',
        },
        mustExist: {
          description:
            'Refuse paths that do not exist; `false` also lets tools create files and folders. Default: true',
          type: 'boolean',
        },
        args: {
          description:
            'Which arguments are paths, at any depth: names for all tools, or names by tool; case makes no difference. With it, nothing else is judged. Default: those named like one (path, filePath, src, target, …), and others that look like one',
          anyOf: [
            { type: 'array', items: { type: 'string' } },
            { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
          ],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['roots'],
      additionalProperties: false,
    },
  },
  goal: {
    load: async () => (await import('../middleware/goal/index.js')).goal,
    shape: {
      type: 'object',
      properties: {
        evaluator: { description: 'The model that judges. A small one is often enough.', anyOf: [code] },
        maxEvaluations: {
          description:
            'How often it is asked in one run before the goal is given up: an integer from 1 to 100. Default: 10',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['evaluator'],
      additionalProperties: false,
    },
  },
  'history-truncator': {
    load: async () => (await import('../middleware/history-truncator/index.js')).historyTruncator,
    shape: {
      type: 'object',
      properties: {
        maxMessages: {
          description: 'Messages a request may have: an integer ≥ 1. Default: no limit',
          type: 'number',
        },
        maxTokens: {
          description: 'Tokens the messages of a request may take: an integer ≥ 1. Default: no limit',
          type: 'number',
        },
        tokenCounter: {
          description:
            'Counts the tokens of a text. Default: `gpt-tokenizer` or `tokenx` if installed, else an estimate',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  idempotency: {
    load: async () => (await import('../middleware/idempotency/index.js')).idempotency,
    shape: {
      type: 'object',
      properties: {
        store: {
          description: 'Where results are kept. To help after a crash, it has to outlive the process.',
          anyOf: [code],
        },
        tools: {
          description:
            'Which tools: names, or a function that is asked for each call. Default: all that are not declared `idempotent`',
          anyOf: [{ type: 'array', items: { type: 'string' } }, code],
        },
        key: {
          description:
            'Identifies a call, within its tenant and tool; undefined leaves the call out. Default: ctx.idempotencyKey',
          anyOf: [code],
        },
        ttlMs: { description: 'Milliseconds a result is kept. Default: 86_400_000, a day', type: 'number' },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['store'],
      additionalProperties: false,
    },
  },
  'loop-guard': {
    load: async () => (await import('../middleware/loop-guard/index.js')).loopGuard,
    shape: {
      type: 'object',
      properties: {
        window: {
          description:
            'How many of the latest turns with tool calls to look at: an integer from 2 to 1000. Default: 6',
          type: 'number',
        },
        repeats: {
          description: 'How many identical turns make a loop: an integer from 2 to `window`. Default: 3',
          type: 'number',
        },
        ignore: {
          description:
            'Tools that may repeat, such as those that poll: names, or a function of the call. Default: none',
          anyOf: [{ type: 'array', items: { type: 'string' } }, code],
        },
        action: {
          description:
            "`nudge` tells the model once and stops the run if it goes on; `stop` stops at once. Default: 'nudge'",
          enum: ['nudge', 'stop'],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'max-turns': {
    load: async () => (await import('../middleware/max-turns/index.js')).maxTurns,
    shape: {
      type: 'object',
      properties: {
        turns: { description: 'Turns a run may take. Default: 10', type: 'number' },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'memory-recall': {
    load: async () => (await import('../middleware/memory-recall/index.js')).memoryRecall,
    shape: {
      type: 'object',
      properties: {
        memory: code,
        k: {
          description: 'How many items to recall for a run, at most: an integer from 1 to 100. Default: 5',
          type: 'number',
        },
        scope: {
          description:
            "Which items to recall: from the tenant's other sessions, or from this session only. Default: 'tenant'",
          enum: ['tenant', 'session'],
        },
        remember: {
          description:
            'What to keep of a finished run: texts, each an item. May be async; if it throws, an event says so. Default: what the user said and the final answer, as one item',
          anyOf: [code],
        },
        timeoutMs: {
          description: 'Milliseconds to wait for the memory before going on without it. Default: 3000',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['memory'],
      additionalProperties: false,
    },
  },
  observability: {
    load: async () => (await import('../middleware/observability/index.js')).observability,
    shape: {
      type: 'object',
      properties: {
        span: {
          description:
            "Starts a span. `parent` is the handle of the run's span, or for a sub-agent's run, that of the run that called it.",
          anyOf: [code],
        },
        counter: { description: 'Adds to a counter.', anyOf: [code] },
        histogram: { description: 'Records a value: seconds or tokens.', anyOf: [code] },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'patch-tool-calls': {
    load: async () => (await import('../middleware/patch-tool-calls/index.js')).patchToolCalls,
    shape: {
      type: 'object',
      properties: {
        text: {
          description:
            "What the model reads in place of a missing result. Default: 'No result: the call was interrupted.'",
          type: 'string',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'prompt-caching': {
    load: async () => (await import('../middleware/prompt-caching/index.js')).promptCaching,
    shape: {
      type: 'object',
      properties: {
        ttl: {
          description:
            "How long the provider keeps what it cached, if it lets you choose: `'5m'` or `'1h'`. Default: '5m'",
          enum: ['5m', '1h'],
        },
        maxMessages: {
          description:
            'How many messages to mark, at most, besides the system prompt: an integer from 0 to 3. Default: 2',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'rate-limit': {
    load: async () => (await import('../middleware/rate-limit/index.js')).rateLimit,
    shape: {
      type: 'object',
      properties: {
        limit: {
          description:
            'Calls that may begin within any `perMs`, for each key. Needed unless there is a `limiter`.',
          type: 'number',
        },
        perMs: {
          description: 'The window, in milliseconds. Needed unless there is a `limiter`.',
          type: 'number',
        },
        key: { description: 'Whose limit it is. Default: the tenant', anyOf: [code] },
        mode: {
          description:
            "What happens to a call over the limit: it waits its turn, or is refused. Default: 'wait'",
          enum: ['wait', 'reject'],
        },
        maxWaitMs: {
          description:
            'Milliseconds a call may wait; one that would have to wait longer is refused at once. Default: 60_000',
          type: 'number',
        },
        scope: { description: "What is counted. Default: 'model'", enum: ['model', 'run', 'tool'] },
        limiter: {
          description: 'Counts for several processes, instead of `limit` and `perMs`.',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  record: {
    load: async () => (await import('../middleware/record/index.js')).record,
    shape: {
      type: 'object',
      properties: {
        to: {
          description:
            'The cassette: a file, started over with the first call; a list that lines are added to; or a function that is called with each line and awaited. If it throws, the recorded call fails.',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['to'],
      additionalProperties: false,
    },
  },
  replay: {
    load: async () => (await import('../middleware/replay/index.js')).replay,
    shape: {
      type: 'object',
      properties: {
        from: {
          description: 'The cassette: a file, or its lines. It is read at the first call.',
          anyOf: [code],
        },
        onMiss: {
          description:
            "What happens to a call that was not recorded: the run fails, or the call is made. Default: 'error'",
          enum: ['error', 'passthrough'],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['from'],
      additionalProperties: false,
    },
  },
  retry: {
    load: async () => (await import('../middleware/retry/index.js')).retry,
    shape: {
      type: 'object',
      properties: {
        attempts: { description: 'Calls in all, the first included: 1 to 100. Default: 3', type: 'number' },
        minDelayMs: { description: 'Milliseconds before the second attempt. Default: 500', type: 'number' },
        maxDelayMs: {
          description:
            'The longest wait, in milliseconds. If the other side asks for a longer one, there is no further attempt. Default: 30_000',
          type: 'number',
        },
        factor: {
          description: 'How much longer each wait is than the one before. Default: 2',
          type: 'number',
        },
        jitter: {
          description:
            "`full`: wait a random part of the delay, so that many clients do not come back at once. Default: 'full'",
          enum: ['full', 'none'],
        },
        retryOn: {
          description:
            'Which errors are worth another attempt: a function, or an error class. Never asked about stops, suspensions and aborts. Default: isTransient',
          anyOf: [code],
        },
        on: { description: "What is retried. Default: 'model'", enum: ['model', 'tool'] },
        random: {
          description: 'A number from 0 up to 1, for the jitter. Default: Math.random',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  skills: {
    load: async () => (await import('../middleware/skills/index.js')).skills,
    shape: {
      type: 'object',
      properties: {
        dir: {
          description: 'The folder of skills: each of its folders with a SKILL.md is one.',
          type: 'string',
        },
        maxBytes: {
          description:
            'The largest file of a skill that can be read, in bytes: an integer ≥ 1. Default: 100_000',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['dir'],
      additionalProperties: false,
    },
  },
  stopwatch: {
    load: async () => (await import('../middleware/stopwatch/index.js')).stopwatch,
    shape: {
      type: 'object',
      properties: {
        log: {
          description:
            "Called with one line per call, and awaited. If it throws, that is noted in `result.changes`. Default: stderr, through `console.error`: stdout is for a program's output",
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'structured-output': {
    load: async () => (await import('../middleware/structured-output/index.js')).structuredOutput,
    shape: {
      type: 'object',
      properties: {
        schema: code,
        maxRepairs: {
          description:
            'How often the model is told what is wrong before the run fails: an integer from 0 to 20. Default: 2',
          type: 'number',
        },
        mode: {
          description:
            "How the model gets the schema. `auto` sends it as `settings.responseSchema` if the schema exposes its JSON Schema or `toJsonSchema` makes it; `prompt` puts it at the end of the system prompt; `validate` does neither. Default: 'auto'",
          enum: ['auto', 'prompt', 'validate'],
        },
        toJsonSchema: {
          description: 'Makes the JSON Schema if the schema does not expose one.',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['schema'],
      additionalProperties: false,
    },
  },
  subagents: {
    load: async () => (await import('../middleware/subagents/index.js')).subagents,
    shape: {
      type: 'object',
      properties: {
        agents: {
          description:
            'Kinds of sub-agents, by type. `general-purpose` always exists; list it here to change it. Default: {}',
          type: 'object',
          additionalProperties: code,
        },
        defaultModel: {
          description:
            'The model of sub-agents that have none of their own. Default: the model of the agent that calls',
          anyOf: [code],
        },
        sharedTools: { description: 'Tools of every sub-agent. Default: []', type: 'array', items: code },
        inheritMiddleware: {
          description:
            'Middleware of every sub-agent, outside its own: guards, tracing, approval. Default: []',
          anyOf: [code],
        },
        inheritGuards: {
          description:
            'Whether the guards of the calling agent also judge in sub-agents, after their own. Default: true',
          type: 'boolean',
        },
        excludeTools: {
          description: 'Names of tools no sub-agent gets, wherever they come from. Default: []',
          type: 'array',
          items: { type: 'string' },
        },
        maxDepth: { description: 'How deep sub-agents may start sub-agents. Default: 3', type: 'number' },
        maxConcurrent: {
          description: 'How many sub-agents of one run work at once; more calls wait. Default: 4',
          type: 'number',
        },
        mapEvent: {
          description:
            'What `onEvent` and `details.events` get of an event: JSON, or undefined to leave it out. Default: a short form of turns, answers, tool results and ends',
          anyOf: [code],
        },
        onEvent: { description: 'Called with each event of a sub-agent, as it happens.', anyOf: [code] },
        tracer: {
          description:
            "A tracing middleware, outermost in every sub-agent. If it is the parent's own instance, `ctx.parentRunId` leads it to the caller.",
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  timeout: {
    load: async () => (await import('../middleware/timeout/index.js')).timeout,
    shape: {
      type: 'object',
      properties: {
        modelMs: {
          description: 'Milliseconds a model call may take, everything further in included.',
          type: 'number',
        },
        toolMs: {
          description: 'Milliseconds a tool call may take, everything further in included.',
          type: 'number',
        },
        firstTokenMs: {
          description:
            'Milliseconds a model may take, from being asked, until the first piece of its answer.',
          type: 'number',
        },
        idleMs: {
          description: 'Milliseconds that may pass between two pieces of an answer.',
          type: 'number',
        },
        tools: {
          description: 'Milliseconds by tool name, instead of `toolMs`; `Infinity` for none. Default: {}',
          type: 'object',
          additionalProperties: { type: 'number' },
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'todo-list': {
    load: async () => (await import('../middleware/todo-list/index.js')).todoList,
    shape: {
      type: 'object',
      properties: {
        systemPrompt: {
          description:
            'Added at the end of the system prompt; empty text for nothing. Default: how and when to keep a list',
          type: 'string',
        },
        toolDescription: {
          description: 'How `write_todos` is described to the model. Default: what it takes',
          type: 'string',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'tool-cache': {
    load: async () => (await import('../middleware/tool-cache/index.js')).toolCache,
    shape: {
      type: 'object',
      properties: {
        tools: {
          description:
            'Whose results are kept: names, or a function that is asked for each call. Default: tools tagged `cacheable`',
          anyOf: [{ type: 'array', items: { type: 'string' } }, code],
        },
        ttlMs: { description: 'Milliseconds a result is good for. Default: 300_000', type: 'number' },
        store: { description: 'Default: a store in memory of `maxEntries` results', anyOf: [code] },
        maxEntries: {
          description:
            'Results the store in memory keeps; beyond that it drops the least recently used. Default: 1000',
          type: 'number',
        },
        scope: {
          description: "Who shares results: the runs of a tenant, of a session, or all. Default: 'tenant'",
          anyOf: [code],
        },
        key: {
          description:
            'What makes two calls the same, within the scope; undefined skips the cache for this call. Default: the tool and its arguments',
          anyOf: [code],
        },
        maxWaitMs: {
          description:
            'Milliseconds to wait for the same call of another run before running the tool anyway. Default: 60_000',
          type: 'number',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'tool-emulator': {
    load: async () => (await import('../middleware/tool-emulator/index.js')).toolEmulator,
    shape: {
      type: 'object',
      properties: {
        model: { description: 'Plays the tools.', anyOf: [code] },
        tools: {
          description:
            'Which tools it plays, by name or as tool objects; an empty list plays none. Default: all of them',
          type: 'array',
          items: { anyOf: [{ type: 'string' }, code] },
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['model'],
      additionalProperties: false,
    },
  },
  'tool-errors': {
    load: async () => (await import('../middleware/tool-errors/index.js')).toolErrors,
    shape: {
      type: 'object',
      properties: {
        format: {
          description:
            'Turns an error into text for the model. `hide` is applied to what it returns. Default: name of the tool and message, without the stack',
          anyOf: [code],
        },
        hide: {
          description:
            'What to remove from the text: patterns, or texts to match literally. Default: nothing',
          type: 'array',
          items: { type: 'string' },
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'tool-result-limit': {
    load: async () => (await import('../middleware/tool-result-limit/index.js')).toolResultLimit,
    shape: {
      type: 'object',
      properties: {
        maxTokens: {
          description:
            'Tokens of text a result may have, the note about the rest included: an integer ≥ 100. Default: 10_000',
          type: 'number',
        },
        spill: { description: 'Stores what is too long. Default: memorySpill()', anyOf: [code] },
        tokenCounter: {
          description: 'Counts the tokens of a text. Default: a quarter of its characters',
          anyOf: [code],
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      additionalProperties: false,
    },
  },
  'tool-selector': {
    load: async () => (await import('../middleware/tool-selector/index.js')).toolSelector,
    shape: {
      type: 'object',
      properties: {
        model: { description: 'Picks the tools.', anyOf: [code] },
        maxTools: {
          description:
            'How many tools it may pick, besides those that are always shown: an integer ≥ 1. Default: 10',
          type: 'number',
        },
        alwaysInclude: {
          description: 'Names of tools that are always shown. Default: none',
          type: 'array',
          items: { type: 'string' },
        },
        includeMiddlewareTools: {
          description:
            'Always show the tools that middleware bring, since middleware may not work without them; false: they are picked like others. Default: true',
          type: 'boolean',
        },
        name: {
          description:
            'Its name. State is kept under it, so two of a kind in one list need different names. Default: its kind',
          type: 'string',
        },
      },
      required: ['model'],
      additionalProperties: false,
    },
  },
};
