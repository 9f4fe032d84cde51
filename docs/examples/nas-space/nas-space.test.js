import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { definePlugin } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { askSpace, spaceIn } from './ask.js';
import nasSpace from './index.js';
import { startSshd } from './sshd.js';

const never = new AbortController().signal;

it('reads df with names that hold blanks', () =>
  assert.deepEqual(
    spaceIn(
      'Filesystem 1024-blocks Used Available Capacity Mounted on\n//nas/My Files 1000 400 600 40% /mnt/a b\n',
    ),
    { freeBytes: 614_400, totalBytes: 1_024_000 },
  ));

describe('beside a real SSH server', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'nas-space-'));
  let server;
  before(async () => {
    server = await startSshd(path.join(folder, 'ssh'));
  });
  after(async () => {
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  const ask = (changes) => askSpace({ ...server.settings, path: '/', ...changes }, never);

  it('says what the file system says', async () => {
    const { blocks, bsize } = statfsSync('/');
    const { totalBytes, freeBytes } = await ask({});
    assert.ok(Math.abs(totalBytes - blocks * bsize) / (blocks * bsize) < 0.01);
    assert.ok(freeBytes > 0 && freeBytes <= totalBytes);
  });

  it('takes any path as one word', async () => {
    const odd = path.join(folder, `it's $(touch ${folder}/touched); \`x\``.replaceAll('/', '_'));
    mkdirSync(odd);
    assert.ok((await ask({ path: odd })).totalBytes > 0);
    await assert.rejects(ask({ path: '/nowhere; echo' }), /nowhere; echo/);
  });

  it('refuses a machine whose key it does not know, and says when its own is refused', async () => {
    const empty = path.join(folder, 'empty');
    writeFileSync(empty, '');
    await assert.rejects(ask({ known_hosts: empty }), /verification failed/i);
    await assert.rejects(ask({ key: path.join(folder, 'ssh/host') }), /Permission denied/);
  });

  it('shows it on a card, as a metric, and says when it is short', async (t) => {
    const settings = { enabled: true, ...server.settings, interval: '1h', least: '900P' };
    const heard = [];
    const listener = definePlugin({
      name: 'listener',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Listens.',
      register: (ctx) => ctx.on('nas-space:asked', (space) => void heard.push(space)),
    });
    const host = await createTestHost({
      plugins: [nasSpace, listener],
      config: { plugins: { 'nas-space': settings } },
    });
    t.after(() => host.close());
    const look = () => host.hooks.collect('collectNotices');
    await host.advance(3_600_000);
    while ((await look()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(await look(), [{ level: 'warning', message: '127.0.0.1 has less than 900P left.' }]);
    while (heard.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(heard[0].host, '127.0.0.1');
    assert.ok(heard[0].freeBytes > 0 && heard[0].freeBytes <= heard[0].totalBytes);
  });
});
