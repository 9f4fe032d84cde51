/**
 * Who may use which route: every route of every plugin, asked as each role, with tokens of all kinds and as nobody,
 * compared with docs/reference/roles.md. What is behind the routes is replaced; the way there is the real one.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ServerRoute } from '@hapi/hapi';
import { definePlugin, principalOf } from '../../core/sdk/index.ts';
import { nativeRoutes } from '../../config/native-routes.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import auth from '../../plugins/auth/index.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../plugins/auth/token.ts';
import { createApi, SAMPLE } from './fixture.ts';
import type { Answer, ApiFixture } from './fixture.ts';
import { inTreePlugins } from '../support/plugins/in-tree.ts';

const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url));
const TOKENS = Object.fromEntries(
  ['everything', 'photos', 'verbs', 'expired', 'of-nobody'].map((name) => [name, makeToken()]),
) as Record<string, string>;

function basic(name: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${name}:pw of ${name}`).toString('base64')}` };
}

function bearer(name: string): Record<string, string> {
  return { authorization: `Bearer ${TOKENS[name]}` };
}

function tokenLines(name: string, rest: string): string {
  return `[[web.tokens]]\nname = "${name}"\ntoken_hash = "${hashToken(TOKENS[name] ?? '')}"\n${rest}\n`;
}

async function document(): Promise<string> {
  const hashes = await Promise.all(
    ['viewer', 'operator', 'admin'].map(async (name) => [name, await makeHash(`pw of ${name}`)] as const),
  );
  return [
    SAMPLE,
    '[web]\nusername = "root"\npassword = "pw of root"',
    ...hashes.map(
      ([name, hash]) => `[[web.users]]\nname = "${name}"\npassword_hash = "${hash}"\nrole = "${name}"`,
    ),
    tokenLines('everything', 'role = "admin"\nexpires = "2999-01-01"'),
    tokenLines('photos', 'role = "admin"\nshares = ["photos"]'),
    tokenLines('verbs', 'verbs = ["reconnect", "status"]'),
    tokenLines('expired', 'role = "admin"\nexpires = "2020-01-01T00:00:00Z"'),
  ].join('\n');
}

interface Row {
  readonly method: string;
  readonly path: string;
  readonly roles: readonly string[];
  readonly shares: string;
  readonly verb: string;
}

/** The table of the reference page, one line for each method. */
function table(): readonly Row[] {
  const page = readFileSync(join(PACKAGE, 'docs/reference/roles.md'), 'utf8');
  const [, routes = ''] = page.split('## Routes');
  const lines = (routes.split('## The dashboard')[0] ?? '')
    .split('\n')
    .filter((line) => /^\| [A-Z]/.test(line));
  return lines.flatMap((line) => {
    const [, methods = '', path = '', viewer, operator, admin, shares = '', verb = ''] = line
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', ''));
    const says = { viewer, operator, admin };
    const roles = Object.entries(says).flatMap(([role, said]) => (said === 'yes' ? [role] : []));
    return methods.split(', ').map((method) => ({ method, path, roles, shares, verb }));
  });
}

/** The routes of all plugins that come with the package, each answering whom it saw. */
async function allRoutes(): Promise<readonly ServerRoute[]> {
  const found = await inTreePlugins();
  return found.flatMap((one) => (one.plugin ? one.ledger.routes : [])).map(bare);
}

function bare({ method, path, options }: ServerRoute): ServerRoute {
  const { plugins = {} } = (options ?? {}) as { readonly plugins?: object };
  return {
    method,
    path,
    options: { plugins },
    handler: (request) => ({ seen: principalOf(request) ?? null }),
  };
}

describe('every route', () => {
  let api: ApiFixture;
  let routes: readonly ServerRoute[];
  const rows = table();
  const ask = (
    { method, path }: Pick<Row, 'method' | 'path'>,
    headers: Record<string, string>,
    share = 'photos',
  ): Promise<Answer> =>
    api.call({ method, path: path.replace('{share}', share).replaceAll(/\{\w+\}/g, 'x'), headers });

  before(async () => {
    routes = await allRoutes();
    const everything = definePlugin({
      name: 'everything',
      version: '1.0.0',
      apiVersion: 1,
      description: 'All routes.',
      register(ctx) {
        ctx.route(...routes);
        ctx.route({ method: 'GET', path: '/undeclared/{share}', handler: () => 'reached' });
      },
    });
    api = await createApi({ toml: await document(), plugins: [auth as Plugin, everything as Plugin] });
  });
  after(() => api.close());

  it('stands in the table', () => {
    const there = routes.flatMap(({ method, path }) => [method].flat().map((one) => `${one} ${path}`));
    assert.deepEqual(rows.map(({ method, path }) => `${method} ${path}`).sort(), [...there].sort());
    assert.ok(there.length > 50, `${there.length} routes`);
  });

  it('lets in the roles of the table and no other', async () => {
    for (const row of rows)
      for (const role of ['viewer', 'operator', 'admin']) {
        const { status, body } = await ask(row, basic(role));
        const what = `${row.method} ${row.path} as ${role}: ${body}`;
        assert.equal(status, row.roles.includes(role) ? 200 : 403, what);
        assert.match(body, status === 200 ? /"kind":"user"/ : /needs the role/, what);
      }
  });

  it('lets in who has the password, and a token of the role admin', async () => {
    for (const row of rows) {
      const [password, token] = [await ask(row, basic('root')), await ask(row, bearer('everything'))];
      assert.deepEqual(
        [password.json(), token.json()],
        [
          { seen: { name: 'root', role: 'admin', kind: 'password' } },
          { seen: { name: 'everything', role: 'admin', kind: 'token' } },
        ],
        row.path,
      );
    }
  });

  it('shows a token with shares its own alone', async () => {
    const expected = { 'its own': [200, 404], filtered: [200, 200], '': [403, 403] };
    for (const row of rows) {
      const [own, other] = [await ask(row, bearer('photos')), await ask(row, bearer('photos'), 'documents')];
      assert.deepEqual(
        [own.status, other.status],
        expected[row.shares as keyof typeof expected],
        `${row.method} ${row.path}`,
      );
      if (other.status === 404) assert.equal(other.body, '');
    }
    assert.ok(rows.some(({ shares }) => shares === 'its own') && rows.some(({ shares }) => shares === ''));
  });

  it('lets a token with verbs use these and no other', async () => {
    for (const row of rows) {
      const { status } = await ask(row, bearer('verbs'));
      const isNamed = ['reconnect', 'status'].includes(row.verb);
      assert.equal(status, isNamed ? 200 : 403, `${row.method} ${row.path}`);
    }
  });

  it('is shut to nobody, to expired tokens and to tokens that are none', async () => {
    for (const row of rows)
      for (const headers of [{}, bearer('expired'), bearer('of-nobody')]) {
        const { status, headers: said } = await ask(row, headers);
        assert.deepEqual([status, typeof said['www-authenticate']], [401, 'string'], row.path);
      }
  });

  it('of those for signing in and out is as the table says, too', async () => {
    const page = readFileSync(join(PACKAGE, 'docs/reference/roles.md'), 'utf8');
    const [, signIns = ''] = page.split('## Signing in and out');
    const lines = [...signIns.matchAll(/^\| ([A-Z]+) \| `(.+)` \| (.+) \|$/gm)];
    assert.deepEqual(
      lines.map(([, method, path, who]) => `${method} ${path}: ${who}`),
      [
        'GET /healthz: anyone',
        'GET /sign-in: anyone',
        'POST /sign-in: anyone',
        'POST /sign-out: whoever is signed in',
      ],
    );
    for (const [, method = '', path = '', who] of lines) {
      const { headers } = await ask({ method, path }, {});
      const isAskedWho = headers['www-authenticate'] !== undefined;
      assert.equal(isAskedWho, who !== 'anyone', `${method} ${path} as nobody`);
      const { status } = await ask({ method, path }, basic('viewer'));
      assert.notEqual(status, 403, `${method} ${path} as a viewer`);
    }
    const native = await nativeRoutes(
      (await inTreePlugins()).filter(({ plugin }) => plugin !== undefined) as never,
    );
    assert.deepEqual(native.map(({ method, path }) => `${method} ${path}`).sort(), [
      'GET /sign-in',
      'POST /sign-in',
      'POST /sign-out',
    ]);
  });

  it('is for administrators when it declares nothing, and not there when it is not', async () => {
    const asked: readonly (readonly [Record<string, string>, number])[] = [
      [basic('admin'), 200],
      [basic('operator'), 403],
      [basic('viewer'), 403],
      [bearer('photos'), 403],
      [bearer('verbs'), 403],
    ];
    for (const [headers, status] of asked) {
      assert.equal((await api.get('/undeclared/photos', headers)).status, status);
      assert.equal((await api.get('/nothing/here', headers)).status, 404);
    }
  });
});
