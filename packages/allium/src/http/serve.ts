/** `serve`: agents behind a fetch handler. */
import { type Agent, type Clock, type Metadata, type Store, systemClock } from '../index.js';
import { checkFields, invalidOption, isRecord } from '../kit/index.js';
import { readBody } from './body.js';
import { type CorsOptions, corsHeaders, preflight } from './cors.js';
import { failureResponse, HttpFailure, report, toFailure } from './failures.js';
import { type EventHub, type EventHubOptions, eventHub } from './follow.js';
import { openApi } from './openapi.js';
import { SERVE_OPTIONS } from './option-kinds.js';
import { Projection, type Show } from './projection.js';
import { type RunQueue, standIns } from './queued.js';
import { type Call, type Handling, Query, type Route } from './route.js';
import { chatRoutes } from './routes/chat.js';
import { runRoutes } from './routes/runs.js';
import { sessionRoutes } from './routes/sessions.js';
import { checkBody } from './schema.js';
import { sessionIds } from './session-ids.js';

/** Who makes a request. Everything in it is done for this tenant. */
export interface Caller {
  /** Whose sessions it can reach. */
  readonly tenant?: string;
  /** Hooks and tools see it as `ctx.runMetadata.user`. */
  readonly user?: string;
  /** Hooks and tools see it in `ctx.runMetadata`. JSON. */
  readonly metadata?: Metadata;
}

/** What a request is about, for `authorize`. */
export interface RequestAim {
  /** The route, as the OpenAPI document names it: `startSession`, `answer`, `deleteSession`, … */
  readonly operation: string;
  /** The id as the client writes it. */
  readonly sessionId?: string;
}

/**
 * Says who makes a request. False, null or undefined refuses it with 401; a Response is sent as it is. It may be
 * async. If it throws, the answer is a 500 without details.
 */
export type Authorize = (
  request: Request,
  aim: RequestAim,
) => Caller | Response | false | null | undefined | Promise<Caller | Response | false | null | undefined>;

export interface ServeOptions {
  /** One agent, or several by name. They have to use the same store. With `queue`: the names of the workers' agents. */
  readonly agents: Agent | Readonly<Record<string, Agent>> | readonly string[];
  /** Where runs are sent instead of being run here: `createQueue()` of `@allium/worker`, with its `store`. */
  readonly queue?: RunQueue;
  /** Says who makes a request. `'none'`: everybody may do everything, and there are no tenants. */
  readonly authorize: Authorize | 'none';
  /** Where the sessions are. @default the store of the agents */
  readonly store?: Store;
  /** The path that all routes begin with, such as `/api/agent`. @default '' */
  readonly basePath?: string;
  /** What clients see in addition to texts, the names and states of tools, questions and the end. */
  readonly show?: Show;
  /**
   * Does a run continue when the client that started it leaves? A request may set this itself. @default false, but
   * true for `useChat`
   */
  readonly detached?: boolean;
  /**
   * The major version of the AI SDK that `useChat` comes from. A request may set it itself, with `?sdk=6`. @default 7
   */
  readonly sdk?: 5 | 6 | 7;
  /** The most bytes that the body of a request may have. @default 1048576 */
  readonly maxBodyBytes?: number;
  /** Which pages of other origins may call this. @default false */
  readonly cors?: CorsOptions | false;
  /**
   * Makes the id of a session in the store from the one that clients write. @default `tenant/id`, or `id` without a
   * tenant
   */
  readonly storeId?: (sessionId: string, caller: Caller) => string;
  /**
   * The way back from `storeId`, for lists: undefined if the session isn't the caller's. Lists leave out a session whose
   * id doesn't lead back to it. @default the same id
   */
  readonly clientId?: (storeId: string, caller: Caller) => string | undefined;
  /** After this many milliseconds without an event, a comment keeps the connection open. @default 15000 */
  readonly heartbeatMs?: number;
  /** How runs of other processes are followed: see `EventHubOptions`. */
  readonly pollMs?: EventHubOptions['pollMs'];
  readonly watch?: EventHubOptions['watch'];
  readonly silenceMs?: EventHubOptions['silenceMs'];
  /** Called with internal errors, and with why runs failed. Clients don't see them. @default an error on stderr */
  readonly onError?: (error: unknown, request: Request) => void;
  /** @default the time of the system */
  readonly clock?: Clock;
}

/**
 * What a platform passes to a handler besides the request: `waitUntil` keeps a worker alive while a detached run
 * continues.
 */
export interface ServeContext {
  waitUntil?(promise: Promise<unknown>): void;
}

export type ServeHandler = (request: Request, context?: ServeContext) => Promise<Response>;

/**
 * Serves agents over HTTP: a function from `Request` to `Response`, for Hono, Next.js, Bun, Deno and workers as it is, and
 * for `node:http`, Express and Fastify with `toNodeListener`.
 *
 * @example
 * const handler = serve({
 *   agents: { support },
 *   authorize: async (request) => {
 *     const user = await userOf(request.headers.get('authorization'));
 *     return user && { tenant: user.company, user: user.id };
 *   },
 * });
 */
export function serve(options: ServeOptions): ServeHandler {
  const handling = checked(options);
  const all: readonly Route[] = [...sessionRoutes, ...runRoutes, ...chatRoutes];
  const routes = all.map(matcherOf);
  const document = openApi(all, handling.basePath);
  const { cors = false } = options;
  const { onError } = handling;
  const fail = (error: unknown, request: Request): Response => {
    const failure = toFailure(error);
    if (failure.status >= 500) onError(error, request);
    return failureResponse(failure);
  };
  return async (request, context) => {
    let response: Response;
    try {
      response =
        request.method === 'OPTIONS' && cors
          ? preflight(request, cors)
          : await answer(handling, routes, document, request, context);
    } catch (error) {
      response = fail(error, request);
    }
    // It is for whoever asked, and for now.
    if (!response.headers.has('cache-control')) response.headers.set('cache-control', 'no-store');
    if (cors) for (const [name, value] of corsHeaders(request, cors)) response.headers.set(name, value);
    return response;
  };
}

/** A route, and the parts of its path; undefined for a parameter. */
interface Matcher {
  readonly route: Route;
  readonly parts: readonly (string | undefined)[];
  readonly names: readonly string[];
}

function matcherOf(route: Route): Matcher {
  const parts = route.path.split('/');
  const isName = (part: string): boolean => part.startsWith('{');
  return {
    route,
    parts: parts.map((part) => (isName(part) ? undefined : part)),
    names: parts.filter(isName).map((part) => part.slice(1, -1)),
  };
}

async function answer(
  handling: Handling,
  routes: readonly Matcher[],
  document: unknown,
  request: Request,
  context: ServeContext | undefined,
): Promise<Response> {
  const { method, url } = request;
  const { basePath } = handling;
  const whole = pathOf(url);
  const path = basePath === '' || whole.startsWith(`${basePath}/`) ? whole.slice(basePath.length) : '';
  if (path === '/openapi.json') {
    if (method === 'GET') return Response.json(document);
    throw notAllowed(['GET']);
  }
  const parts = path.split('/');
  const matches = (one: Matcher): boolean => fits(one, parts);
  const found = routes.find((one) => one.route.method === method && matches(one));
  if (!found) throw notFound(routes.filter(matches));
  const { route } = found;
  const parameters = parametersOf(found, parts);
  const { sessionId } = parameters;
  const aim = { operation: route.operation, ...(sessionId !== undefined && { sessionId }) };
  const caller = await handling.authorize(request, aim);
  // A copy: the headers of a redirect, or of what `fetch` returned, can't be changed.
  if (caller instanceof Response) return new Response(caller.body, caller);
  if (!isRecord(caller)) throw new HttpFailure(401, 'UNAUTHORIZED', 'Say who you are.');
  // A tenant that is missing by mistake would put everybody's sessions together.
  if ('tenant' in caller && typeof caller.tenant !== 'string')
    throw invalidOption(
      'tenant',
      'text from `authorize`, or to be left out where there are no tenants',
      caller.tenant,
    );
  const body = route.body ? await readBody(request, handling.maxBodyBytes) : undefined;
  if (route.body) checkBody(route.body, body);
  const query = new Query(url);
  const call: Call = { handling, request, query, caller, parameters, body: body as Call['body'], context };
  return route.handle(call);
}

function notFound(others: readonly Matcher[]): HttpFailure {
  if (others.length === 0) return new HttpFailure(404, 'NOT_FOUND', 'There is no such route.');
  return notAllowed(others.map(({ route }) => route.method));
}

function notAllowed(methods: readonly string[]): HttpFailure {
  const allow = [...new Set(methods)].join(', ');
  return new HttpFailure(405, 'METHOD_NOT_ALLOWED', `This route takes ${allow}.`, { allow });
}

/** From the address of a `Request`, which is complete and has a normalised path. Some servers end every path with a slash. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2);
  const end = url.search(/\/?([?#]|$)/);
  return url.slice(start, end);
}

function fits({ parts }: Matcher, have: readonly string[]): boolean {
  if (parts.length !== have.length) return false;
  for (let i = 0; i < parts.length; i++) if (parts[i] !== undefined && parts[i] !== have[i]) return false;
  return true;
}

function parametersOf({ parts, names }: Matcher, have: readonly string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  let n = 0;
  for (const [i, part] of parts.entries()) {
    if (part !== undefined) continue;
    try {
      parameters[names[n++]!] = decodeURIComponent(have[i]!);
    } catch {
      throw notFound([]);
    }
  }
  return parameters;
}

function checked(options: ServeOptions): Handling {
  checkFields('serve()', SERVE_OPTIONS, options);
  const { authorize, basePath = '', maxBodyBytes = 1_048_576, heartbeatMs = 15_000, sdk = 7 } = options;
  const { queue, cors } = options;
  if (cors && cors.origins === '*' && cors.credentials)
    throw invalidOption(
      'cors.origins',
      "a list of origins: with `credentials`, '*' is not allowed",
      cors.origins,
    );
  const agents = queue ? queuedAgents(options, queue) : agentsOf(options.agents);
  const first = agents.values().next().value!;
  const { store = first.store } = options;
  for (const [name, agent] of agents)
    if (agent.store !== store)
      throw invalidOption(
        `agents.${name}`,
        'an agent with the same `store` as serve() and the other agents: make one store and pass it to all',
        agent.name,
      );
  if (options.clientId && !options.storeId)
    throw invalidOption(
      'clientId',
      'given together with `storeId`: it is the way back from those ids',
      options.clientId,
    );
  const { show = {}, pollMs, watch, silenceMs, clock = systemClock } = options;
  const hub: EventHub = eventHub({ store, show, pollMs, watch, silenceMs, clock });
  return {
    agents,
    names: new Map([...agents].map(([name, agent]) => [agent, name])),
    store,
    queue,
    hub,
    show,
    projection: new Projection(show),
    showsUsage: show.usage ?? false,
    authorize: authorize === 'none' ? () => ({}) : authorize,
    basePath,
    detached: options.detached,
    sdk,
    maxBodyBytes,
    heartbeatMs,
    ids: sessionIds(options),
    onError: harmless(options.onError ?? report),
  };
}

function agentsOf(given: ServeOptions['agents']): ReadonlyMap<string, Agent> {
  if (isAgent(given)) return new Map([[given.name, given]]);
  if (!isRecord(given) || Object.keys(given).length === 0)
    throw invalidOption('agents', 'an agent, or agents by name', given);
  for (const [name, agent] of Object.entries(given))
    if (!isAgent(agent)) throw invalidOption(`agents.${name}`, 'an agent', agent);
  return new Map(Object.entries(given) as [string, Agent][]);
}

/** Only the names of the workers' agents are known. */
function queuedAgents({ agents, store }: ServeOptions, queue: RunQueue): ReadonlyMap<string, Agent> {
  const known = store ?? queue.store;
  if (known === undefined)
    throw invalidOption('queue', 'one that was made with the `store` of the workers', queue);
  if (!Array.isArray(agents) || agents.length === 0 || !agents.every((name) => typeof name === 'string'))
    throw invalidOption('agents', 'with `queue`, a list of the names of the agents', agents);
  return standIns(agents, known);
}

function isAgent(value: unknown): value is Agent {
  return typeof (value as Agent | undefined)?.session === 'function';
}

/** If it fails itself, that must not end the process. */
function harmless(onError: (error: unknown, request: Request) => unknown): Handling['onError'] {
  return async (error, request) => {
    try {
      await onError(error, request);
    } catch (failure) {
      report(failure);
    }
  };
}
