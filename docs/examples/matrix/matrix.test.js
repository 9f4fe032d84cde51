import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import { startHomeserver } from './homeserver.js';
import matrix from './index.js';

const ROOM = '!garden:example.org';
const FLOOD = { type: 'garden.flood', severity: 'warning', message: 'It is wet.', data: {}, key: 'flood 1' };

/** A homeserver and the plugin, which is told to talk to it. `askedAt`: when it was asked, by the plugin's clock. */
async function together(t, { answers = [], token = 'hush' } = {}) {
  const askedAt = [];
  const onRequest = () => askedAt.push(host.clock.now());
  const server = await startHomeserver({ room: ROOM, token: 'hush', answers, onRequest });
  t.after(() => server.close());
  const settings = { enabled: true, homeserver: server.url, room: ROOM, token };
  const host = await createTestHost({ plugins: [matrix], config: { plugins: { matrix: settings } } });
  t.after(() => host.close());
  /** Lets the time pass, faster than it does, until something is the case. */
  const until = async (isSo) => {
    while (!(await isSo())) {
      await host.advance(250);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  const tell = (event) => host.hooks.observe('notification', event);
  return { server, host, askedAt, tell, until, isIdle: () => host.status().matrixWaiting === 0 };
}

const idOf = ({ url }) => url.split('/').at(-1);

test('an event comes into the room once, and lesser ones do not', async (t) => {
  const { server, tell, until, isIdle } = await together(t);
  await tell({ ...FLOOD, severity: 'info', message: 'It is dry.', key: 'dry' });
  await tell(FLOOD);
  await tell(FLOOD);
  await until(isIdle);
  assert.deepEqual(server.messages(), ['[warning] It is wet.']);
});

test('too many requests: it waits for as long as it was told, and sends the same transaction', async (t) => {
  const tooMany = { errcode: 'M_LIMIT_EXCEEDED', error: 'Too Many Requests', retry_after_ms: 20_000 };
  const { server, askedAt, tell, until, isIdle } = await together(t, { answers: [[429, tooMany]] });
  await tell(FLOOD);
  await until(isIdle);
  assert.deepEqual(
    server.requests.map(({ status }) => status),
    [429, 200],
  );
  assert.ok(askedAt[1] - askedAt[0] >= 20_000, String(askedAt[1] - askedAt[0]));
  assert.equal(new Set(server.requests.map(idOf)).size, 1);
});

test('an answer that is lost leads to one message in the room, not two', async (t) => {
  const { server, askedAt, tell, until, isIdle } = await together(t, { answers: ['drop', [502, {}]] });
  await tell(FLOOD);
  await until(isIdle);
  assert.equal(server.requests.length, 3);
  assert.ok(askedAt[1] - askedAt[0] >= 1_000 && askedAt[2] - askedAt[1] >= 2_000);
  assert.deepEqual(server.messages(), ['[warning] It is wet.']);
});

test('what waits is kept, and is sent by the next instance', async (t) => {
  const { server, host, tell, until, isIdle } = await together(t, { answers: [[503, {}]] });
  await tell(FLOOD);
  await until(() => server.requests.length === 1);
  const settings = { homeserver: server.url, room: ROOM, token: 'hush' };
  await host.configure({ plugins: { matrix: { ...settings, enabled: false } } });
  await host.configure({ plugins: { matrix: { ...settings, enabled: true } } });
  await until(isIdle);
  assert.deepEqual(server.messages(), ['[warning] It is wet.']);
});

test('says what is missing, as long as it is not set up', async (t) => {
  const host = await createTestHost({
    plugins: [matrix],
    config: { plugins: { matrix: { enabled: true } } },
  });
  t.after(() => host.close());
  const [{ message }] = await host.hooks.collect('collectNotices');
  assert.equal(message, 'Matrix is not told: homeserver, room and token must be set');
});

test('a wrong token is named in a notice, without the token', async (t) => {
  const { host, tell, until } = await together(t, { token: 'stolen' });
  await tell(FLOOD);
  let notices = [];
  await until(async () => (notices = await host.hooks.collect('collectNotices')).length > 0);
  assert.match(notices[0].message, /^Matrix is not told: the homeserver answered 401, M_UNKNOWN_TOKEN/);
  assert.doesNotMatch(JSON.stringify(notices), /stolen/);
});
