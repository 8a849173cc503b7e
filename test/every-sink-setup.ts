/** Runs that bring a secret in at one place, with everything that keeps or shows something of them. */
import { otel } from '@allium/otel';
import {
  Agent,
  type AgentEvent,
  type AssistantContent,
  defineMiddleware,
  type GuardAction,
  type Message,
  type Middleware,
  type ModelPart,
  memoryStore,
  type Session,
  type Store,
  tool,
  toolResult,
} from 'allium';
import { auditLog } from 'allium/middleware/audit-log';
import { cache } from 'allium/middleware/cache';
import { consoleLogger } from 'allium/middleware/console-logger';
import { observability } from 'allium/middleware/observability';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { retry } from 'allium/middleware/retry';
import { structuredOutput } from 'allium/middleware/structured-output';
import { toolCache } from 'allium/middleware/tool-cache';
import { type Answer, scriptedModel } from 'allium/testing';
import { z } from 'zod';
import { GUARDS, guardsOf, type Place, phrase, type Setting } from './every-sink-guards.js';
import { joined, Sinks, serving, tracing } from './every-sink-sinks.js';
import { storeWith } from './run-checks.js';

/** A store that tells a sink everything it is asked to keep. */
function told(store: Store, sinks: Sinks): Store {
  return storeWith(store, {
    append(id, seq, entries) {
      sinks.add('journal', entries);
      return store.append(id, seq, entries);
    },
  });
}

/** The part with a space more, if it is text. */
function spaced<P extends { readonly type: string }>(part: P): P {
  return 'text' in part ? { ...part, text: `${part.text} ` } : part;
}

const halves = (text: string): ModelPart[] =>
  text.match(/.{1,7}/gs)!.map((piece) => ({ type: 'text', text: piece }));

/** The answers of a model in a run that brings the secret in at this place, and those of its sub-agent. */
function scripts(place: Place, secret: string, asks: boolean): { main: Answer[]; clerk: Answer[] } {
  const call = (name: string, args: unknown = {}): ModelPart => ({
    type: 'tool-call',
    id: `c-${name}`,
    name,
    arguments: JSON.stringify(args),
  });
  const calling = (...parts: ModelPart[]): Answer => ({
    parts: [...parts, { type: 'finish', reason: 'tool-calls' }],
  });
  const saying = (...parts: ModelPart[]): Answer => ({
    parts: [...parts, { type: 'finish', reason: 'stop' }],
  });
  const said = `Well, ${secret}, so it is.`;
  const main: Answer[] = [];
  const clerk: Answer[] = [];
  if (place === 'output') main.push(calling(...halves(said), call('plain')));
  if (place === 'thinking')
    main.push(
      calling(
        ...halves(said).map((part): ModelPart => ({ ...part, type: 'thinking' }) as ModelPart),
        call('plain'),
      ),
    );
  if (place === 'arguments') main.push(calling(call('plain', { to: [{ [`the ${secret}`]: said }] })));
  if (place === 'steered') main.push(calling(call('plain')));
  if (place === 'result' || place === 'details' || place === 'update' || place === 'tool error')
    main.push(calling(call('leak')));
  if (place === 'sub-agent prompt') main.push(calling(call('clerk', { prompt: said })));
  if (place === 'sub-agent answer' || place === 'sub-agent result')
    main.push(calling(call('clerk', { prompt: 'go' })));
  if (place === 'sub-agent answer') clerk.push(saying(...halves(said)));
  if (place === 'sub-agent result') clerk.push(calling(call('leak')));
  if (asks) main.push(calling(call('ask')));
  if (place === 'model error') main.push({ parts: halves(said), error: new Error(said) });
  if (place === 'structured') main.push(saying(...halves(JSON.stringify({ note: secret }))));
  if (place === 'final') main.push(saying(...halves(said)));
  return { main, clerk };
}

/** Runs it, and one run more in the same session. */
export async function play(setting: Setting): Promise<Sinks> {
  const { guard, action, mode, place, look, sessionId = 's' } = setting;
  const sinks = new Sinks();
  const { secret } = GUARDS[guard]!;
  const said = `Well, ${secret}, so it is.`;
  // Errors of tools and models are judged as what tools say.
  const judgesErrors =
    action === 'none' || guardsOf(guard, action, setting.points).on.includes('tool-result');
  const lost = judgesErrors ? `Lost: ${said}` : 'Lost.';
  const own = setting.store ?? memoryStore();
  const store = setting.store ? own : told(own, sinks);
  const caches = { cache: new Map(), toolCache: new Map() };
  const cassette: string[] = [];
  const progress = { main: 0, clerk: 0 };
  /** How often the agent's model was to be called, and how often it was. */
  const calls = { asked: 0, made: 0 };
  const { main, clerk } = scripts(place, secret, mode === 'resumed');

  /** Goes through the script, and says the end of it for ever. `retried`: each answer fails once, with half of it told. */
  const modelOf = (which: 'main' | 'clerk', steps: readonly Answer[]) => {
    let failed = -1;
    const model = scriptedModel(
      [
        (request) => {
          sinks.add(which === 'main' ? 'requests' : 'requests of the sub-agent', request.messages);
          if (which === 'main') calls.made++;
          const at = progress[which];
          const step = steps[at] ?? (place === 'structured' ? '{"note":"Done."}' : 'Done.');
          if (mode === 'retried' && failed !== at) {
            failed = at;
            const { parts } = typeof step === 'object' && 'parts' in step ? step : { parts: [] };
            const cut = parts.filter((part) => part === 'tick' || part.type !== 'finish');
            return { parts: cut, error: Object.assign(new Error(lost), { status: 503 }) };
          }
          if (mode === 'retried') sinks.happened++;
          progress[which]++;
          return step;
        },
      ],
      { repeat: true, id: which },
    );
    return model;
  };

  /** The one to speak into. */
  let running: Session | undefined;
  const plain = tool({
    name: 'plain',
    description: 'P.',
    input: z.any(),
    async execute(args) {
      sinks.add('arguments', args);
      if (place === 'steered') await running?.steer(said);
      return 'fine';
    },
  });
  let thrown = 0;
  const leak = tool({
    name: 'leak',
    description: 'L.',
    tags: ['cacheable'],
    input: z.any(),
    execute(_, ctx) {
      if (mode === 'retried' && thrown++ === 0) throw Object.assign(new Error(lost), { status: 503 });
      if (place === 'update') ctx.update(said, { seen: said });
      if (place === 'tool error') throw new Error(said);
      if (place === 'details')
        return toolResult({ content: 'fine', details: { deep: [{ [secret]: said }] } });
      return place === 'update' ? 'fine' : said;
    },
  });
  const ask = tool({
    name: 'ask',
    description: 'A.',
    input: z.any(),
    async execute(_, ctx) {
      const { type } = await ctx.suspend({ title: 'Sure?' });
      sinks.happened++;
      return type;
    },
  });

  const systemPrompt = `You count animals. ${phrase.toUpperCase()}`;
  const logged = (line: unknown) => sinks.add('log', line);
  const traces = tracing();
  const counting = defineMiddleware({
    name: 'counting',
    wrapModel(_, next) {
      calls.asked++;
      return next();
    },
  });
  const guarding = () => guardsOf(guard, action as GuardAction, setting.points).middleware;
  /** Changes what passes, before guards judge it: the trace tells such differences. */
  const spacing = defineMiddleware({
    name: 'spacing',
    acceptMessage: (message) =>
      ({ ...message, content: (message.content as AssistantContent[]).map(spaced) }) as Message,
    afterTool(ctx) {
      ctx.result = { ...ctx.result!, content: ctx.result!.content.map(spaced) };
    },
    // A replaced answer is no longer live, so streams stay as they are.
    async wrapModel(_, next) {
      const answer = await next();
      return mode === 'cached' ? { ...answer, content: answer.content.map(spaced) } : answer;
    },
  });
  const agentOf = (...more: Middleware[]): Agent => {
    const around =
      mode === 'retried' ? [retry({ minDelayMs: 0 }), retry({ name: 'r2', on: 'tool', minDelayMs: 0 })] : [];
    const shaped =
      place === 'structured' ? [structuredOutput({ schema: z.object({ note: z.string() }) })] : [];
    // Those of them that keep nothing in the session.
    const telling: Middleware[] = [
      observability({
        span: (name, attributes) => {
          sinks.add('spans', [name, attributes]);
          return { end: (outcome) => sinks.add('spans', outcome) };
        },
        counter: (...given) => sinks.add('spans', given),
      }),
      consoleLogger({ level: 'debug', console: { error: logged, info: logged, debug: logged } }),
    ];
    const watching: Middleware[] = [
      auditLog({ sink: (line) => sinks.add('audit', line) }),
      ...(look ? [] : telling),
    ];
    const helper = new Agent({
      name: 'clerk',
      model: modelOf('clerk', clerk),
      systemPrompt,
      tools: [leak],
      middleware: around,
    });
    return new Agent({
      model: modelOf('main', main),
      systemPrompt,
      store,
      tools: [plain, leak, ask, helper.asTool({ name: 'clerk', description: 'C.' })],
      observers: [(event) => sinks.add('observers', event)],
      trace: 'changes',
      middleware: [
        counting,
        spacing,
        ...watching,
        ...around,
        ...shaped,
        ...more,
        ...(action === 'none' ? [] : (setting.instead ?? guarding)()),
        ...(look ? [] : [otel({ tracerProvider: traces.provider, content: true })]),
      ],
    });
  };

  const attempt = async (agent: Agent, start: (session: Session) => Promise<unknown>, id = sessionId) => {
    const session = agent.session(id);
    running = session;
    try {
      sinks.add('result', await start(session));
    } catch (error) {
      sinks.add('errors', error);
    }
    await agent.observersIdle();
    if (look === 'disk') return session;
    const messages = await session.messages();
    sinks.add('history', messages);
    const trace = await session.trace();
    if (!look) sinks.add('trace', [trace, messages.map(({ id }) => trace?.explain(id))]);
    // As they were sent: the history beside them is what a guard of requests leaves alone.
    for (const { n, sent } of trace?.records ?? [])
      if (sent)
        sinks.add(
          'requests in the trace',
          trace!.requestAt(n).messages.map(({ message }) => message),
        );
    return session;
  };
  const input = place === 'input' ? said : 'Hello.';
  const begin = async (session: Session): Promise<unknown> => {
    if (place === 'queued') {
      await session.followUp(said);
      // With guards too it lies there as it was posted, until a run takes it in.
      if (action === 'none') sinks.add('inbox', await own.take(session.id, 0));
    }
    if (mode === 'served') {
      const way = session.id === sessionId ? 'live' : session.id.endsWith('-chat') ? 'chat' : 'json';
      return serving(agent, sinks, { sessionId: session.id, input, way });
    }
    if (mode !== 'stream') return session.run(input);
    const events: AgentEvent[] = [];
    const stream = session.stream(input);
    if (place === 'structured') {
      for await (const part of stream.partials) sinks.add('partials', part);
      return stream.result;
    }
    try {
      for await (const event of stream) events.push(event);
    } finally {
      sinks.add('events', events);
      sinks.add('events', joined(events));
    }
    return stream.result;
  };

  const layers =
    mode === 'cached'
      ? [cache({ store: caches.cache, scope: 'all' }), toolCache({ store: caches.toolCache, scope: 'all' })]
      : [record({ to: cassette })];
  let agent = agentOf(...layers);
  const session = await attempt(agent, begin);
  if (mode === 'resumed') {
    const [question] = await session.pending();
    agent = agentOf(...layers);
    if (question)
      await attempt(agent, (again) => again.resume({ answers: { [question.id]: { type: 'approve' } } }));
  }
  if (mode === 'cached' || mode === 'replayed' || mode === 'served') {
    for (const id of mode === 'served'
      ? [`${sessionId}-again`, `${sessionId}-chat`]
      : [`${sessionId}-again`]) {
      Object.assign(progress, { main: 0, clerk: 0 });
      Object.assign(calls, { asked: 0, made: 0 });
      thrown = 0;
      agent =
        mode === 'replayed'
          ? agentOf(replay({ from: [...cassette], onMiss: 'passthrough' }))
          : agentOf(...layers);
      await attempt(agent, begin, id);
    }
    if (mode !== 'served') sinks.happened = calls.asked - calls.made;
  }
  await attempt(agent, (again) => again.run('And now?'));
  sinks.add('traces', traces.spans());
  sinks.add('cassette', cassette);
  sinks.add('cache', [caches.cache, caches.toolCache]);
  for (const id of [sessionId, `${sessionId}-again`]) sinks.add('inbox', await own.take(id, 0));
  return sinks;
}
