// @long
/** A share that is mounted anew while a file is half sent over WebDAV: nothing of that half is taken for a file. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { openWebdavShare, PASSWORD, SHARE, USER } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import type { Nas } from '../../support/nas/nas.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { inForm } from '../../support/platform/long-form.ts';

const HALF = randomBytes(1_500_000);
const PATIENCE = { timeoutMs: 60_000, everyMs: 100 };
const team = { name: SHARE, connection: 'nas', remote_path: SHARE };
const REMOUNTS = {
  'given another write_back': { sections: { mount: { write_back: '2s' } } },
  'made read-only': { shares: [{ ...team, read_only: true }] },
  'moved to another folder of the NAS': { shares: [{ ...team, remote_path: 'other' }] },
};

const REMOUNTED = Object.entries(REMOUNTS);

describe('a share that is mounted anew while a file is half sent over WebDAV', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let url: WebdavShare['url'];
  let dav: WebdavShare['dav'];

  /** Sends the first half and waits. The returned function sends the rest, and resolves with the status, if any. */
  const sendHalf = (name: string): (() => Promise<number | undefined>) => {
    const headers = { 'content-length': 2 * HALF.length };
    const sending = request(url(name), { method: 'PUT', auth: `${USER}:${PASSWORD}`, headers, agent: false });
    const answered = new Promise<number | undefined>((resolve) => {
      sending.once('response', (response) => resolve(response.resume().statusCode));
      sending.on('error', () => resolve(undefined));
      sending.once('close', () => resolve(undefined));
    });
    sending.write(HALF);
    return () => {
      sending.end(HALF);
      return answered;
    };
  };
  const isUnderWay = async (name: string): Promise<boolean> => {
    const { output } = await runClient('curl', ['-sS', '-I', '-u', `${USER}:${PASSWORD}`, url(name)]);
    return /^content-length: [1-9]/im.test(output);
  };
  const bytesOnNas = async (name: string): Promise<number | undefined> =>
    (await nas.has(`${SHARE}/${name}`)) ? (await stat(nas.path(SHARE, name))).size : undefined;

  before(async () => {
    ({ scratch, nas, daemon, url, dav } = await openWebdavShare('dav-half'));
    await nas.put('other/a', 10);
  });
  after(() => scratch.close());

  for (const [what, changes] of inForm({ short: REMOUNTED.slice(-1), long: REMOUNTED }))
    it(`leaves nothing of it where the share is ${what}`, async () => {
      await daemon.submit(daemon.text());
      await daemon.healthy();
      await writeFile(scratch.path('empty'), '');
      await until(
        'it is writable',
        async () => (await dav('-T', scratch.path('empty'), url('empty.bin'))) < 300,
        PATIENCE,
      );
      await daemon.synced(60_000);
      const sending = [sendHalf('fresh.bin'), sendHalf('empty.bin')];
      await until(
        'both are under way',
        async () => (await isUnderWay('fresh.bin')) && (await isUnderWay('empty.bin')),
        PATIENCE,
      );
      const former = await daemon.bindfsPid(SHARE);
      assert.equal((await daemon.submit(daemon.text(changes))).body.ok, true);
      await until('it is mounted anew', async () => (await daemon.bindfsPid(SHARE)) !== former, PATIENCE);
      await daemon.healthy();
      const statuses = await Promise.all(sending.map((finish) => finish()));
      await daemon.synced(60_000);
      assert.deepEqual(statuses, [502, 502], 'nobody was told that it is there');
      assert.deepEqual([await bytesOnNas('fresh.bin'), await bytesOnNas('empty.bin')], [undefined, 0]);
    });
});
