/** The page of a reader with a role: what is refused is not shown, and refused with a sentence when asked for. */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { definePlugin, html } from '../../../../core/sdk/index.ts';
import { createTestHost } from '../../../../core/testing/test-host.ts';
import type { TestHost } from '../../../../core/testing/test-host.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import auth from '../../../../plugins/auth/index.ts';
import { makeHash } from '../../../../plugins/auth/password-hash.ts';
import dashboard from '../../../../plugins/dashboard/index.ts';
import { until } from '../../../support/platform/wait.ts';

const acts: string[] = [];

const garden = definePlugin({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows a garden.',
  register(ctx) {
    const act = (name: string) => () => {
      acts.push(name);
      return { ok: true, message: `did ${name}` };
    };
    const actions = { water: act('water'), fell: act('fell') };
    const buttons = ['water', 'fell'].map((action) => ({ action, label: `Button ${action}` }));
    ctx.route({
      method: 'GET',
      path: '/port',
      handler: ({ raw }) => String(raw.req.socket.localPort),
    });
    ctx.tab({
      id: 'garden',
      title: 'Garden',
      access: { see: 'viewer', act: { water: 'operator' } },
      render: (view) => html`<p>roses for ${view.role}, after ${acts.length} acts</p>`,
      controls: (view) => html`<div>${buttons.map((button) => view.button(button))}</div>`,
      parts: { piece: () => 'a leaf' },
      actions,
    });
    ctx.tab({
      id: 'shed',
      title: 'Shed',
      render: () => 'tools',
      parts: { piece: () => 'a saw' },
      actions,
    });
  },
});

function basic(name: string): Record<string, string> {
  return { authorization: `Basic ${btoa(`${name}:word`)}` };
}

describe('the page of a reader', () => {
  let host: TestHost;
  const get = (url: string, name: string) => host.inject({ url, headers: basic(name) });
  const post = (url: string, name: string) =>
    host.inject({
      method: 'POST',
      url,
      payload: '',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...basic(name) },
    });

  before(async () => {
    const password_hash = await makeHash('word');
    const users = ['viewer', 'operator', 'admin'].map((role) => ({ name: role, password_hash, role }));
    host = await createTestHost({
      plugins: [dashboard, garden, auth],
      clock: createClock(),
      config: { web: { users } },
    });
  });
  after(() => host.close());

  it('has the buttons that the role allows', async () => {
    for (const [name, buttons] of [
      ['viewer', []],
      ['operator', ['water']],
      ['admin', ['water', 'fell']],
    ] as const) {
      const { payload, statusCode } = await get('/tabs/garden', name);
      assert.equal(statusCode, 200);
      assert.match(payload, new RegExp(`roses for ${name}`));
      const shown = [...payload.matchAll(/Button (\w+)/g)].map(([, action]) => action);
      assert.deepEqual(shown, buttons, name);
    }
  });

  it('has no tab that the role may not see, and says that there is none', async () => {
    for (const [name, isSeen] of [
      ['viewer', false],
      ['operator', false],
      ['admin', true],
    ] as const) {
      const { payload } = await get('/', name);
      assert.deepEqual(
        [
          payload.includes('/tabs/garden'),
          payload.includes('/tabs/shed'),
          payload.includes('/tabs/settings'),
        ],
        [true, isSeen, isSeen],
        name,
      );
      const status = isSeen ? 200 : 404;
      for (const path of ['/tabs/shed', '/dashboard/parts/shed/piece', '/tabs/settings'])
        assert.equal((await get(path, name)).statusCode, status, `${path} as ${name}`);
      assert.equal((await get('/dashboard/parts/garden/piece', name)).payload, 'a leaf');
    }
  });

  it('refuses an action with a sentence next to the button, and does not run it', async () => {
    acts.length = 0;
    for (const [name, action] of [
      ['viewer', 'water'],
      ['viewer', 'fell'],
      ['operator', 'fell'],
    ] as const) {
      const { statusCode, payload } = await post(`/dashboard/do/garden/${action}`, name);
      assert.equal(statusCode, 403);
      assert.match(payload, /data-tone="bad".*Your role does not allow this/);
    }
    assert.equal((await post('/dashboard/do/shed/water', 'operator')).statusCode, 404);
    assert.deepEqual(acts, []);
    for (const [name, action] of [
      ['operator', 'water'],
      ['admin', 'fell'],
    ] as const)
      assert.match((await post(`/dashboard/do/garden/${action}`, name)).payload, new RegExp(`did ${action}`));
    assert.deepEqual(acts, ['water', 'fell']);
  });

  describe('that is kept up to date', () => {
    let port: string;
    before(async () => {
      port = (await get('/port', 'admin')).payload;
    });
    const events = async (name: string, query = ''): Promise<IncomingMessage> => {
      const request = httpRequest({
        host: '127.0.0.1',
        port,
        path: `/dashboard/events?:page=tab&:name=garden${query}`,
        headers: basic(name),
        agent: false,
      });
      request.end();
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      return answer;
    };

    it('hears of events of its own, not of those of another role', async () => {
      const stream = async (name: string): Promise<string> => {
        let text = '';
        for await (const piece of await events(name)) {
          text += String(piece);
          if (text.includes('event: frame') && text.includes('roses for')) break;
        }
        return text;
      };
      const [viewer, admin] = [await stream('viewer'), await stream('admin')];
      assert.match(viewer, /roses for viewer/);
      assert.doesNotMatch(viewer, /Button/);
      assert.match(admin, /roses for admin/);
      assert.match(admin, /Button fell/);
    });

    it('shows what an action has done with its end, not with the next figures', async () => {
      const stream = await events('operator');
      let text = '';
      stream.on('data', (piece: Buffer) => (text += String(piece)));
      let beats = 0;
      for (let round = 0; round < 5; round += 1) {
        const from = text.length;
        const { payload } = await post('/dashboard/do/garden/water', 'operator');
        assert.match(payload, /did water/);
        const shown = `after ${acts.length} acts`;
        await until(shown, async () => text.includes(shown, from), { timeoutMs: 10_000 });
        if (text.slice(from, text.indexOf(shown, from)).includes('event: beat')) beats += 1;
      }
      stream.destroy();
      // Each beat has pages drawn anew, too: what had waited for one would come behind it, each time.
      assert.ok(beats < 5, 'it has waited for the next beat');
    });

    it('is there for administrators, however many a viewer has open', async () => {
      const opened: IncomingMessage[] = [];
      for (let x = 0; x < 130; x += 1) {
        const answer = await events('viewer', `&x=${x}`);
        answer.on('error', () => undefined).resume();
        opened.push(answer);
      }
      const answer = await events('admin');
      const page = await get('/tabs/garden', 'admin');
      for (const one of [answer, ...opened]) one.destroy();
      assert.deepEqual(
        [opened.filter(({ statusCode }) => statusCode === 200).length, answer.statusCode, page.statusCode],
        [100, 200, 200],
      );
    });
  });
});
