/** The agent of the demo: a shop's support desk with a model that answers by rule, so it needs no key and no network. */
import {
  Agent,
  type Clock,
  defineMiddleware,
  type Middleware,
  type Model,
  type ModelPart,
  type ModelRequest,
  type Store,
  textOf,
  tool,
  window,
} from 'allium';
import { type ApprovalVerdict, approval, ask } from 'allium/middleware/approval';
import { circuitBreaker } from 'allium/middleware/circuit-breaker';
import { costTracking } from 'allium/middleware/cost-tracking';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { loopGuard } from 'allium/middleware/loop-guard';
import { retry } from 'allium/middleware/retry';
import { timeout } from 'allium/middleware/timeout';

export interface DemoOptions {
  readonly store: Store;
  readonly clock?: Clock;
  readonly newId?: () => string;
  readonly tenant?: string;
  /** Lets that many milliseconds pass. */
  readonly pause: (ms: number) => Promise<void>;
}

const EMAIL = /[\w.+-]+@[\w-]+\.[\w.]+/g;

/** Takes e-mail addresses out of what anybody reads. */
function privacy(): Middleware {
  return defineMiddleware({
    name: 'privacy',
    traits: ['redacts'],
    guard: {
      on: ['input', 'output', 'tool-result'],
      hold: window(80),
      find: (text) =>
        [...text.matchAll(EMAIL)].map((match) => ({
          start: match.index,
          end: match.index + match[0].length,
          replacement: '[e-mail]',
          kind: 'email',
          severity: 'medium' as const,
        })),
    },
  });
}

/** Refuses what a support desk has no business with. */
function topic(): Middleware {
  return defineMiddleware({
    name: 'topic',
    guard: {
      on: ['input'],
      judge: ({ text }) =>
        /\b(?:password|api key)\b/i.test(text)
          ? {
              type: 'deny',
              reason: 'Nobody at the desk handles passwords or keys.',
              kind: 'credentials',
              severity: 'high',
            }
          : { type: 'allow' },
      action: 'stop',
    },
  });
}

/** Tells the model what holds today. */
function houseRules(): Middleware {
  return defineMiddleware({
    name: 'house-rules',
    transformSystemPrompt: (prompt) =>
      `${prompt}\nRefunds above 100 USD need a person. Delivery in December takes two days longer.`,
  });
}

/** Shows the model short results: a whole order is more than it needs. */
function shortResults(): Middleware {
  return defineMiddleware({
    name: 'short-results',
    transformContext: (messages) => {
      if (!messages.some((message) => message.role === 'tool' && textOf(message).length > 160))
        return messages;
      return messages.map((message) => {
        if (message.role !== 'tool' || textOf(message).length <= 160) return message;
        const text = `${textOf(message).slice(0, 160)} … (shortened)`;
        return { ...message, content: [{ type: 'text' as const, text }] };
      });
    },
  });
}

type Args = Readonly<Record<string, unknown>>;
interface Property {
  readonly type: 'string' | 'number' | 'boolean';
  readonly description?: string;
  readonly enum?: readonly string[];
}

/** A schema of plain fields, all of them required, without a library. */
function fields(properties: Readonly<Record<string, Property>>) {
  const schema = {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
  return {
    input: {
      '~standard': {
        version: 1 as const,
        vendor: 'allium-demo',
        validate(value: unknown) {
          const given = (value ?? {}) as Args;
          const issues = Object.entries(properties).flatMap(([name, { type, enum: words }]) => {
            if (typeof given[name] !== type) return [{ message: `Expected a ${type}.`, path: [name] }];
            return words && !words.includes(given[name] as string)
              ? [{ message: `Expected one of ${words.join(', ')}.`, path: [name] }]
              : [];
          });
          return issues.length > 0 ? { issues } : { value: given };
        },
      },
    },
    toJsonSchema: () => schema,
  };
}

function tools(pause: DemoOptions['pause']) {
  const busyOnce = new Set<unknown>();
  return [
    tool({
      name: 'find_order',
      description: 'Looks an order up by its number.',
      ...fields({ order: { type: 'string', description: 'The number, such as A-1042.' } }),
      idempotent: true,
      async execute({ order }: Args) {
        await pause(180 + (digits(order) % 240));
        if (digits(order) % 5 === 0 && !busyOnce.has(order)) {
          busyOnce.add(order);
          throw new Overloaded('The order system is busy. Try again.');
        }
        if (digits(order) % 7 === 0) throw new Error(`The order system does not know ${order}.`);
        const total = 20 + (digits(order) % 230);
        return JSON.stringify({
          order,
          total: `${total} USD`,
          customer: `customer${digits(order) % 50}@example.com`,
          status: digits(order) % 3 === 0 ? 'delivered' : 'on its way',
          carrier: 'Northern Parcel',
          lines: [
            { item: 'Cast-iron pan, 26 cm', quantity: 1 },
            { item: 'Beeswax candles, box of six', quantity: 2 },
          ],
          address: 'Lindenstrasse 5, 10969 Berlin',
        });
      },
    }),
    tool({
      name: 'refund',
      description: 'Pays money back.',
      ...fields({
        order: { type: 'string' },
        amount: { type: 'number', description: 'In US dollars.' },
        reason: { type: 'string', enum: ['damaged', 'late', 'unwanted'] },
        notify: { type: 'boolean', description: 'Write to the customer.' },
      }),
      async execute({ order, amount }: Args) {
        await pause(420);
        return `Refunded ${amount} USD for ${order}.`;
      },
    }),
    tool({
      name: 'search_help',
      description: 'Searches the help pages.',
      ...fields({ query: { type: 'string' } }),
      idempotent: true,
      async execute({ query }: Args) {
        await pause(90);
        return `Three pages about "${query}". The first says: parcels can be returned within 30 days, unopened or not.`;
      },
    }),
  ];
}

function digits(text: unknown): number {
  return Number(String(text).replace(/\D/g, '').slice(-6) || '0');
}

/** Every third call of such a question fails once, so that retries can be seen. */
class Overloaded extends Error {
  override readonly name = 'Overloaded';
  readonly status = 529;
}

function words(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}

/** What to say next, from what was said. */
function plan(request: ModelRequest): readonly ModelPart[] {
  const last = request.messages.findLastIndex(({ role }) => role === 'user');
  const asked = textOf(request.messages[last] ?? { content: [] });
  const since = request.messages.slice(last + 1);
  const done = since.flatMap((message) => (message.role === 'tool' ? [message] : []));
  const step = since.filter(({ role }) => role === 'assistant').length;
  const order = /[A-Z]-\d+/.exec(asked)?.[0];
  const call = (name: string, args: Args, id = `call_${name}_${step}`): ModelPart => ({
    type: 'tool-call',
    id,
    name,
    arguments: JSON.stringify(args),
  });
  const say = (text: string): ModelPart[] => words(text).map((piece) => ({ type: 'text', text: piece }));
  const result = done.at(-1);
  const rounds = Number(/check (\d+) orders/i.exec(asked)?.[1] ?? 0);
  if (rounds > 0)
    return step < rounds
      ? [call('find_order', { order: `B-${2001 + step}` })]
      : say(`All ${rounds} orders are checked. Those the system does not know are listed above.`);
  if (/in stock\?/i.test(asked) && !hasTool(request, 'find_order'))
    return say('Yes, twelve pieces, in aisle 4.');
  if (/stock|warehouse/i.test(asked) && hasTool(request, 'ask_warehouse'))
    return step === 0
      ? [
          ...say('I ask the warehouse.'),
          call('ask_warehouse', { prompt: `Is the pan of order ${order ?? 'A-1001'} in stock?` }),
        ]
      : say(`The warehouse says: ${textOf(result ?? { content: [] })}`);
  if (/refund|money back/i.test(asked))
    return refunds(step, order ?? 'A-1042', say, call, result && textOf(result), result?.isError);
  if (order !== undefined)
    return step === 0
      ? [
          call('find_order', { order }),
          ...(/return|policy/i.test(asked) ? [call('search_help', { query: 'returns' })] : []),
        ]
      : say(
          result?.isError
            ? `I could not find ${order}: please check the number.`
            : `Order ${order} is on its way with Northern Parcel. Write to desk@example.com if it is not there by Friday.`,
        );
  if (/return|policy|help/i.test(asked))
    return step === 0
      ? [call('search_help', { query: asked.slice(0, 40) })]
      : say('You can return parcels within 30 days, unopened or not. Shall I open a return for you?');
  return say(
    'I can look up orders, explain returns, ask the warehouse and arrange refunds. What is your order number?',
  );
}

function refunds(
  step: number,
  order: string,
  say: (text: string) => ModelPart[],
  call: (name: string, args: Args) => ModelPart,
  result: string | undefined,
  isError: boolean | undefined,
): readonly ModelPart[] {
  if (step === 0) return [...say('Let me look at the order first.'), call('find_order', { order })];
  if (step === 1)
    return isError
      ? say(`I could not find ${order}, so there is nothing to refund.`)
      : [call('refund', { order, amount: 60 + (digits(order) % 140), reason: 'damaged', notify: true })];
  return say(
    isError ? `The refund was declined: ${result}` : `Done. ${result} It takes three to five days to arrive.`,
  );
}

function hasTool({ tools: offered }: ModelRequest, name: string): boolean {
  return offered.some((one) => one.name === name);
}

function demoModel(id: string, price: { input: number; output: number }, pause: DemoOptions['pause']): Model {
  const failed = new Set<string>();
  return {
    provider: 'demo',
    id,
    price,
    contextWindow: 200_000,
    async *stream(request) {
      const input = Math.ceil(
        JSON.stringify([request.messages, request.systemPrompt, request.tools]).length / 4,
      );
      await pause(250 + (input % 400));
      const asked = textOf(request.messages.findLast(({ role }) => role === 'user') ?? { content: [] });
      if (/urgent/i.test(asked) && !failed.has(asked)) {
        failed.add(asked);
        throw new Overloaded('The model is overloaded. Try again.');
      }
      if (/outage/i.test(asked)) throw new Error('The model cannot be reached: connection refused.');
      const parts = plan(request);
      let output = 0;
      for (const part of parts) {
        output += Math.ceil(JSON.stringify(part).length / 6);
        await pause(part.type === 'text' ? 25 : 110);
        yield part;
      }
      const reason = parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
      const cacheRead = request.messages.length > 4 ? Math.floor(input / 2) : 0;
      yield { type: 'finish', reason, usage: { inputTokens: input, outputTokens: output, cacheRead } };
    },
  };
}

/** The support desk. It has a sub-agent, asks people about large refunds, and has two guards. */
export function demoAgent({ store, clock, newId, tenant, pause }: DemoOptions, large = false): Agent {
  const time = clock && { clock };
  const common = { store, ...time, ...(newId && { newId }), ...(tenant !== undefined && { tenant }) };
  const warehouse = new Agent({
    name: 'warehouse',
    model: demoModel('small', { input: 0.25, output: 1.25 }, pause),
    systemPrompt: 'You know what is in stock.',
    ...common,
  });
  return new Agent({
    name: 'support-desk',
    model: demoModel(
      large ? 'large' : 'medium',
      large ? { input: 5, output: 25 } : { input: 1, output: 5 },
      pause,
    ),
    systemPrompt: 'You work at the support desk of a kitchen shop. Be brief and kind.',
    tools: [
      ...tools(pause),
      warehouse.asTool({ name: 'ask_warehouse', description: 'Asks the warehouse what is in stock.' }),
    ],
    middleware: [
      costTracking(),
      timeout({ modelMs: 60_000, ...time }),
      // Left inside the timeout, so that there is a hazard to see: explain() says what is wrong with it.
      circuitBreaker({ failures: 20, ...time }),
      retry({ attempts: 3, minDelayMs: 300, jitter: 'none', ...time }),
      retry({ name: 'tool-retry', on: 'tool', attempts: 2, minDelayMs: 150, jitter: 'none', ...time }),
      privacy(),
      topic(),
      houseRules(),
      shortResults(),
      historyTruncator({ maxMessages: 100 }),
      loopGuard(),
      approval({ policy: { refund: refundPolicy, '*': 'allow' } }),
    ],
    limits: { turns: 60 },
    trace: 'changes',
    ...common,
  });
}

function refundPolicy({ args }: { readonly args: unknown }): ApprovalVerdict {
  const { amount, order } = args as Args;
  return Number(amount) > 100 ? ask({ order, amount, currency: 'USD' }) : 'allow';
}
