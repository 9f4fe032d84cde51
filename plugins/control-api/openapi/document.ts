/** The OpenAPI document of all routes that are served now, including those of third-party plugins. */
import type { RequestRoute } from '@hapi/hapi';
import type { RouteDocument } from 'mountkeeper';
import { jsonSchema } from './json-schema.ts';
import type { JsonSchema } from './json-schema.ts';

const GENERAL = {
  400: 'The request is not understood; the body says why.',
  401: 'The password or token is missing or wrong.',
  403: 'Refused before any route: it comes from a page of another site, or the role does not allow it.',
  429: 'Too many wrong passwords; ask again after `retry-after`.',
  503: 'The plugin that answers here is just starting; ask again after `retry-after`.',
} as const;

export function openApi(routes: readonly RequestRoute[]): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const sorted = [...routes]
    .filter(({ method }) => method !== '*')
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const route of sorted) {
    const path = route.path.replaceAll(/\{([^{}?*]{1,100})[?*]?\d{0,3}\}/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operation(route, path) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mountkeeper',
      version: '1',
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Everything that this daemon answers to over HTTP. ' +
        "Routes outside of `/api/` are the dashboard's own and may change.",
    },
    servers: [{ url: '/' }],
    security: [{ basic: [] }, { token: [] }],
    paths,
    components: {
      securitySchemes: {
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'Needed where `web.password` is set, but on the command socket.',
        },
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token of `web.tokens`, in place of a password.',
        },
      },
      responses: Object.fromEntries(
        Object.entries(GENERAL).map(([status, description]) => [`status${status}`, { description }]),
      ),
    },
  };
}

function operation({ method, path: declared, settings, realm }: RequestRoute, path: string): JsonSchema {
  const document = settings.plugins?.documented?.();
  const parameters = parametersOf(path, document);
  return {
    operationId: `${method}${declared.replaceAll(/[^A-Za-z0-9]+/g, '-').replace(/-$/, '')}`,
    tags: [realm.plugin ?? 'core'],
    ...(document && { summary: document.summary }),
    ...(parameters.length > 0 && { parameters }),
    ...(document?.body && {
      requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(document.body) } } },
    }),
    responses: responses(document),
  };
}

function parametersOf(
  path: string,
  { query = {}, headers = {} }: Pick<RouteDocument, 'query' | 'headers'> = {},
): readonly JsonSchema[] {
  const text = { type: 'string' };
  return [
    ...[...path.matchAll(/\{([^{}]{1,100})\}/g)].map(([, name = '']) => ({
      name,
      in: 'path',
      required: true,
      schema: text,
    })),
    ...Object.entries(query).map(([name, schema]) => ({
      name,
      in: 'query',
      required: false,
      schema: jsonSchema(schema),
    })),
    ...Object.entries(headers).map(([name, description]) => ({
      name,
      in: 'header',
      required: false,
      description,
      schema: text,
    })),
  ];
}

function responses(document: RouteDocument | undefined): JsonSchema {
  const own = Object.entries(document?.answers ?? {}).map(
    ([status, body]) => [status, response(status, body)] as const,
  );
  const general = Object.keys(GENERAL).map(
    (status) => [status, { $ref: `#/components/responses/status${status}` }] as const,
  );
  const unknown = document ? [] : [['default', { description: 'Said on the page of the plugin.' }] as const];
  return Object.fromEntries([...general, ...unknown, ...own]);
}

function response(status: string, body: RouteDocument['answers'][number] | undefined): JsonSchema {
  const description =
    status === '404'
      ? 'There is none of that name.'
      : status.startsWith('2')
        ? 'As asked.'
        : 'Refused, or failed; the body says why.';
  if (body === null || body === undefined) return { description };
  if (typeof body === 'string') return { description, content: { [body]: { schema: { type: 'string' } } } };
  return { description, content: { 'application/json': { schema: jsonSchema(body) } } };
}
