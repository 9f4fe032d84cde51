/**
 * GET /api/openapi.json: true to OpenAPI by an independent validator, to the routes that are there, and to
 * what they answer.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { definePlugin, documented, Joi } from '../../core/sdk/index.ts';
import { jsonSchema } from '../../plugins/control-api/openapi/json-schema.ts';
import dirRefresh from '../../plugins/dir-refresh/index.ts';
import uploads from '../../plugins/uploads/index.ts';
import webhooks from '../../plugins/webhooks/index.ts';
import { API_PLUGINS, createApi } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

interface Operation {
  summary?: string;
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
  requestBody?: { content: Record<string, { schema: object }> };
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
}

const stranger = definePlugin({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'A garden.',
  register(ctx) {
    ctx.route({ method: 'GET', path: '/garden', handler: () => 'roses' });
    ctx.route({
      method: 'POST',
      path: '/garden/{bed}',
      options: documented({
        summary: 'Waters a bed',
        body: Joi.object({ litres: Joi.number().min(1).required() }),
        answers: { 200: Joi.boolean() },
      }),
      handler: () => true,
    });
  },
});

describe('GET /api/openapi.json', () => {
  let api: ApiFixture;
  let document: Document;
  before(async () => {
    api = await createApi({
      plugins: [...API_PLUGINS, dirRefresh as never, uploads as never, webhooks as never, stranger],
    });
    document = (await api.get('/api/openapi.json')).json() as Document;
  });
  after(() => api.close());

  it('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(document) as never);
    assert.deepEqual([result.valid, result.errors ?? []], [true, []]);
    assert.equal(document.openapi, '3.1.0');
  });

  it('describes every route of the API with a summary and answers', async () => {
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
    );
    const bare = described.filter(
      ({ path, operation }) =>
        path.startsWith('/api/') &&
        (operation.summary === undefined || operation.responses['200'] === undefined),
    );
    assert.deepEqual(
      bare.map(({ method, path }) => `${method} ${path}`),
      [],
    );
    assert.ok(described.length > 18, `${described.length} routes`);
    assert.ok(document.paths['/garden']?.['get'], 'what a stranger does not describe is named all the same');
    assert.deepEqual(
      document.paths['/garden/{bed}']?.['post']?.requestBody?.content['application/json']?.schema,
      {
        type: 'object',
        properties: { litres: { type: 'number', minimum: 1 } },
        required: ['litres'],
        additionalProperties: false,
      },
    );
  });

  it('is true to what is answered', async () => {
    api.publish([{ name: 'photos', health: 'failed', healthMessage: 'away' }, { name: 'b' }], {
      nasOffline: true,
    });
    const version = (await api.get('/api/config/history')).json() as { versions: { version: string }[] };
    const asked = [
      '/api/status',
      '/api/status/photos',
      '/api/extensions',
      '/api/extensions/photos',
      '/api/bwlimit',
      '/api/plugins',
      '/api/notices',
      '/api/config/history',
      `/api/config/history/${version.versions[0]?.version}`,
      '/api/logs',
      '/api/webhooks/deliveries',
    ];
    for (const path of asked) {
      const declared = path.replace(/\/photos$/, '/{share}').replace(/history\/.+/, 'history/{version}');
      await assertTrue(await api.get(path), document.paths[declared]?.['get'], path);
    }
    const sent: readonly (readonly [path: string, body: unknown])[] = [
      ['/api/config', { toml: 'a' }],
      ['/api/config/check', { toml: await api.fileText() }],
      ['/api/config/check', { toml: 'a = 1' }],
      ['/api/bwlimit', { up: '1M' }],
      ['/api/bwlimit', { up: 1 }],
      ['/api/plugins/logs/log-level', { level: 'loud' }],
      ['/api/webhooks/test', {}],
    ];
    for (const [path, body] of sent)
      await assertTrue(
        await api.post(path, body),
        document.paths[path.replace('/logs/', '/{name}/')]?.['post'],
        path,
      );
  });

  async function assertTrue(
    answer: { status: number; json(): unknown },
    operation: Operation | undefined,
    what: string,
  ): Promise<void> {
    const { default: Ajv } = await import('ajv/dist/2020.js');
    const schema = operation?.responses[answer.status]?.content?.['application/json']?.schema;
    assert.ok(schema, `${what}: ${answer.status} is not described`);
    const ajv = new Ajv.default({ strict: false, validateFormats: false });
    assert.ok(ajv.validate(schema, answer.json()), `${what}: ${ajv.errorsText()}`);
  }
});

describe('schemas of Joi as JSON Schema', () => {
  it('are mapped as far as the API uses them', () => {
    const cases: readonly (readonly [Joi.Schema, object])[] = [
      [Joi.string().allow('', null), { anyOf: [{ type: 'string' }, { type: 'null' }] }],
      [Joi.string().valid('a', 'b'), { enum: ['a', 'b'] }],
      [
        Joi.number().integer().min(0).max(9).default(3),
        { type: 'integer', minimum: 0, maximum: 9, default: 3 },
      ],
      [Joi.array().items(Joi.string()).max(2), { type: 'array', items: { type: 'string' }, maxItems: 2 }],
      [Joi.alternatives(Joi.string(), Joi.number()), { anyOf: [{ type: 'string' }, { type: 'number' }] }],
      [Joi.object().unknown(), { type: 'object' }],
      [
        Joi.object().pattern(Joi.string(), Joi.boolean()),
        { type: 'object', additionalProperties: { type: 'boolean' } },
      ],
      [Joi.any().description('what'), { description: 'what' }],
    ];
    for (const [schema, expected] of cases) assert.deepEqual(jsonSchema(schema), expected);
  });
});
