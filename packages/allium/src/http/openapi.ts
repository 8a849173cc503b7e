/** The OpenAPI document, made from the routes, so that it can't differ from them. */
import { type Answers, ref, type Schema, schemas } from './answer-schemas.js';
import type { Route } from './route.js';
import type { BodySchema } from './schema.js';

const json = (schema: Schema | BodySchema): Schema => ({ content: { 'application/json': { schema } } });
const failure = {
  description: 'It was refused; the code says why.',
  ...json(ref('Failure')),
};

export function openApi(routes: readonly Route[], basePath: string): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Allium', version: '1', description: 'Sessions with agents.' },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    paths,
    components: { schemas },
  };
}

function operation({ operation, summary, path, query = {}, body, answers }: Route): unknown {
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...Object.entries(query).map(([name, description]) => ({
      name,
      in: 'query',
      description,
      schema: { type: name === 'limit' ? 'integer' : 'string' },
    })),
  ];
  return {
    operationId: operation,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: (body.required ?? []).length > 0, ...json(body) } }),
    responses: { ...responses(answers), default: failure },
  };
}

function responses({ json, events, nothing, headers }: Answers): Schema {
  const content = {
    ...(json && { 'application/json': { schema: json } }),
    // OpenAPI 3.1 has no words for a stream, so this is what generators take for one: the schema of its events.
    ...(events && { 'text/event-stream': { schema: events } }),
  };
  const said = events ? 'Done. `data` of each server-sent event is JSON of this schema.' : 'Done.';
  const told =
    headers && Object.fromEntries(Object.entries(headers).map(([name, schema]) => [name, { schema }]));
  return {
    ...((json || events) && { 200: { description: said, ...(told && { headers: told }), content } }),
    ...(nothing && { 204: { description: 'Done; there is nothing to say.' } }),
  };
}
