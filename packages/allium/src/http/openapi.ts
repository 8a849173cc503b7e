/** The OpenAPI document, made from the routes, so that it can't differ from them. */
import { decisionSchema, type Route } from './route.js';

const json = (schema: unknown): unknown => ({ content: { 'application/json': { schema } } });
const failure = {
  description: 'It was refused; the code says why.',
  ...(json({ $ref: '#/components/schemas/Failure' }) as object),
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
    components: {
      schemas: {
        Failure: {
          type: 'object',
          required: ['error'],
          properties: {
            error: {
              type: 'object',
              required: ['code', 'message'],
              properties: { code: { type: 'string' }, message: { type: 'string' } },
            },
          },
        },
        Decision: decisionSchema,
      },
    },
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
  const content: Record<string, unknown> = {};
  if (answers.includes('json')) content['application/json'] = { schema: { type: 'object' } };
  if (answers.includes('events') || answers.includes('chat'))
    content['text/event-stream'] = { schema: { type: 'string' } };
  return {
    operationId: operation,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: (body.required ?? []).length > 0, ...(json(body) as object) } }),
    responses: {
      ...(Object.keys(content).length > 0 && { 200: { description: 'Done.', content } }),
      ...(answers.includes('nothing') && { 204: { description: 'Done; there is nothing to say.' } }),
      default: failure,
    },
  };
}
