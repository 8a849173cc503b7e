// The words of the pages that scripts/options-pages.mjs writes. Lines that begin with @ become tables.

export const OPTIONS_TEXT = `
# Options

Everything \`Agent\`, its runs and \`tool()\` take. Unknown names and wrong values are refused with \`INVALID_OPTION\`, which says
what was given and what is expected. Options of middleware are in their READMEs.

## \`new Agent(options)\`

@options agent/agent-options.ts AgentOptions

The decision hooks of middleware (\`acceptMessage\`, \`transformContext\`, \`transformSystemPrompt\`, \`convertToLlm\`,
\`resolveToolCall\`, \`beforeToolCall\`, \`afterToolCall\`, \`afterModelResponse\`, \`shouldStopAfterTurn\`, \`onRunEnd\`,
\`compact\`) are accepted here too. A hook given here **replaces** those of all middleware; \`explain()\` names the ones that no
longer run. To replace a hook of a middleware that guards, name that middleware in \`replaces\`.

### \`limits\`

Reaching one ends the run as \`stopped\`, with \`stop.by\` \`'kernel'\`. More in [Limits and budgets](../guide/limits.md).

@options kernel/protocol/limits.ts Limits

### \`settings\`

@options kernel/messages/model.ts ModelSettings

## \`agent.session(id, options)\`

@options agent/agent-options.ts SessionOptions

## \`run(input, options)\`, \`stream(input, options)\`

Of an agent and of a session. \`input\` is text, content, a message or a list of them: see [Messages](messages.md).
Middleware that declare \`runOptions\` add names of their own.

@options kernel/protocol/run-options.ts RunOptions

## \`resume(options)\`, \`resumeStream(options)\`

For a session: continues a run that was suspended or broke off. They take everything \`run()\` takes, and:

@options kernel/protocol/run-options.ts ResumeOptions

## \`tool(options)\`

@options kernel/protocol/tool.ts ToolOptions

A schema that can't be expressed as JSON Schema, or isn't one of objects, is refused here, with \`INVALID_TOOL\`. A raw
JSON Schema with a mistake further in fails the first call with the same code.

### \`toolResult(result)\`

What \`execute\` may return if text or JSON isn't enough. \`content\` may also be plain text.

@options kernel/messages/tool-result.ts ToolResult content details isError=false terminate

### \`agent.asTool(options)\`

Takes \`name\`, \`description\`, \`toJsonSchema\`, \`concurrency\`, \`timeoutMs\` and \`tags\` of \`tool()\`, and:

@options agent/agent-tool.ts AsToolOptions

## Questions to people

\`beforeToolCall\` returns \`{ ask: request }\`, a tool calls \`ctx.suspend(request)\`. A request holds:

@options kernel/protocol/store.ts Request

Without an \`onRequest\` the run is suspended: \`result.pending\` holds the questions, and \`session.resume({ answers })\` continues.
With one, the run waits for its answer, and no limit counts the wait. The handler of the request comes first, then that of the
run, then that of the agent. It gets:

@fields kernel/protocol/store.ts PendingRequest

and \`{ signal }\`, which aborts when nobody needs the answer any more. It returns a decision: \`{ type: 'approve' }\` (with
\`remember: 'tool'\` or \`'arguments'\` for the rest of the session), \`{ type: 'edit', args }\`, \`{ type: 'reject', reason }\` or
\`{ type: 'respond', text }\`. Undefined suspends the run after all. If the handler throws, or returns something that isn't a
decision, the run fails, with "(in onRequest)" in the message; if a tool asked, only the call fails.

\`\`\`ts output
import { Agent, defineMiddleware, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { z } from 'zod';

const remove = tool({
  name: 'remove',
  description: 'Removes a file.',
  input: z.object({ path: z.string() }),
  execute: ({ path }) => \`removed \${path}\`,
});
const careful = defineMiddleware({
  name: 'careful',
  suspends: true,
  beforeToolCall: (ctx) => ({ ask: { title: \`Run \${ctx.toolCall.name}?\`, timeoutMs: 60_000 } }),
});
const agent = new Agent({
  model: scriptedModel([toolCalls({ name: 'remove', args: { path: 'a.txt' } }), text('Left alone.')]),
  tools: [remove],
  middleware: [careful],
  onRequest(request) {
    console.log(request.title, request.arguments, request.by);
    return { type: 'reject', reason: 'Not that one.' };
  },
});
console.log((await agent.run('Tidy up.')).text);
\`\`\`

\`\`\`text
Run remove? {"path":"a.txt"} careful
Left alone.
\`\`\`

## What middleware declare

In addition to its hooks, which are in [Concepts](../guide/concepts.md), a middleware may declare:

@options kernel/protocol/middleware.ts Middleware name madeWith tools mentions brings state extraLlmCalls runOptions order onFail suspends sink traits looksBack enoughHistory seams guard

### \`ctx.generate(model, request)\`

Calls a model for the middleware itself. Any other field is refused with \`INVALID_OPTION\`.

@options kernel/protocol/contexts.ts GenerateRequest
`;

export const MESSAGES_TEXT = `
# Messages

The messages that you pass to \`run()\` and \`steer()\`, and that histories, requests and hooks hold. Messages are frozen once
they are in a history: to change one, put another in its place.

## What you can pass in

One of these, or a list of them:

- text;
- a list of user content, such as text and images;
- a message written by hand, \`{ role: 'user', content }\`, whose content may be plain text;
- a message of another history.

A message gets its id when it is appended.

\`\`\`ts output
import { Agent, textOf } from 'allium';
import { scriptedModel, text } from 'allium/testing';

const model = scriptedModel([text('One.'), text('Two.'), text('Three.')]);
const session = new Agent({ model }).session('s');
await session.run('Plain text.');
await session.run([
  { type: 'text', text: 'What is on it?' },
  { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
]);
const { messages } = await session.run({ role: 'user', content: 'By hand.', metadata: { from: 'mail' } });
console.log(messages.map((message) => \`\${message.role}: \${textOf(message)}\`));
\`\`\`

\`\`\`text
[ 'user: By hand.', 'assistant: Three.' ]
\`\`\`

\`userMessage(content)\`, \`syntheticUserMessage(text, { source })\` and \`assistantMessage(content)\` make messages;
\`textOf(message)\` and \`toolCallsOf(message)\` read them.

## Roles

@shapes kernel/messages/messages.ts UserMessage ModelResponse AssistantMessage ToolMessage

An \`AssistantMessage\` is a \`ModelResponse\` with an id. Each message may carry \`metadata\`, a JSON object that models don't
see; only what is in its \`provider\`, under the name of a provider, is sent to that provider.

## Content

@shapes kernel/messages/messages.ts TextContent ImageContent FileContent ThinkingContent ToolCall ProviderContent

| role | content |
|---|---|
| \`user\` | text, images, files |
| \`assistant\` | text, thinking, tool calls, files, anything else that a provider returns |
| \`tool\` | text, images, files |

Every part may carry \`metadata\`. Anything else is refused with \`INVALID_MESSAGE\`; the error says what is wrong.
`;

export const TEST_KIT_TEXT = `
# The test kit

\`allium/testing\` holds middleware, models and stores to the laws of their port: one test per law, with vitest, node:test or
any runner of that shape. \`testX\` declares a test per law, named after it; \`checkX\` tries the laws at once and returns a
report. A law that does not hold fails, unless \`skip\` says why it does not apply.

## All three

@options testing/law-runner.ts RunnerOptions

## \`testMiddleware(factory, options)\`

@laws testing/middleware-laws

The factory is called again for almost every run, with \`{ clock }\`, a clock that stands still.

@options testing/test-middleware.ts CheckMiddlewareOptions

A scenario gives the middleware something to do:

@options testing/middleware-laws/scenarios.ts Scenario

\`\`\`ts output
import { defineMiddleware } from 'allium';
import { checkMiddleware, text, toolCalls } from 'allium/testing';

const polite = defineMiddleware({ name: 'polite', transformSystemPrompt: (prompt) => \`\${prompt}\\nBe kind.\` });
const reports = await checkMiddleware(() => polite, {
  changes: ['system-prompt'],
  scenarios: [{ name: 'a tool call', answers: [toolCalls({ name: 'kit_add', args: { a: 1, b: 2 } }), text('Done.')] }],
});
console.log(reports.filter(({ ok }) => !ok));
\`\`\`

\`\`\`text
[]
\`\`\`

## \`testModel(model, options)\`

Takes a model, or a function that makes one.

@laws testing/model-laws

@options testing/test-model.ts CheckModelOptions

where \`text\`, \`toolCall\` and \`thinking\` are:

@options testing/test-model.ts CapabilityOptions

## \`testStore(options)\`

@laws testing/store-laws

@options testing/test-store.ts CheckStoreOptions
`;

export const KIT_TEXT = `
# The kit for authors

\`allium/kit\` holds what middleware, models and tools need in addition to the public names of \`allium\`. The built-in middleware
import nothing but these two, so your own package can do whatever they do.
[Writing a middleware](../guide/writing-middleware.md) walks through one. Stores have more of their own in
[\`allium/stores/kit\`](../../packages/allium/src/stores/kit/README.md), tests in [\`allium/testing\`](test-kit.md).

\`\`\`ts output
import { type Fields, kinds, named, type OptionsOf, readOptions } from 'allium/kit';

const OPTIONS = {
  /** How often. @default 2 */
  times: kinds.withDefault(kinds.integer(1, 10), 2),
  ...named('twice'),
} satisfies Fields;

function twice(options: OptionsOf<typeof OPTIONS> = {}) {
  const { times, name } = readOptions('twice', OPTIONS, options);
  console.log(name, times);
}
twice();

for (const wrong of [{ times: 11 }, { time: 2 }]) {
  try {
    twice(wrong as object);
  } catch (error) {
    console.log((error as Error).message);
  }
}
\`\`\`

\`\`\`text
twice 2
Expected \`times\` to be an integer from 1 to 10, got 11.
Unknown option \`time\` of twice(). Did you mean \`times\`? It takes: times, name.
\`\`\`

@kit kit/options.ts

@kit kit/errors.ts

@kit kit/values.ts

@kit kit/models.ts

@kit kit/tools.ts

@kit kit/calls.ts

@kit kit/answers.ts

@kit kit/children.ts

@kit kit/sinks.ts

@kit kit/folders.ts

@kit kit/journal.ts

@kit kit/tracing.ts
`;

export const NAMES_TEXT = `
# Names

The functions, classes and constants that \`allium\` and its smaller entry points export. Types aren't listed: editors show them
with their comments. Other pages have the rest: [the kit for authors](kit.md), [the box of middleware](middleware.md), the stores
in the [README](../../README.md), and the README of each package.

## \`allium\`

@names index.ts

## \`allium/testing\`

@names testing/index.ts

## \`allium/http\`

@names http/index.ts

## \`allium/http/client\`

@names http/client/index.ts

## \`allium/json-schema\`

@names json-schema/index.ts

## \`allium/registry\`

@names registry/index.ts
`;
