// @load loud
// @long
/**
 * rclone below a share is killed while clients send small files over WebDAV: what comes before that is noticed is sent
 * once more, and no client is told of it.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openWebdavShare, PASSWORD, SHARE, USER } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const KILLS = inForm({ short: 2, long: 4 });
/** An rclone that dies sooner is not expected back at once. */
const SETTLED_MS = 3_000;
const PATIENCE = { timeoutMs: 60_000 };

describe('rclone below a share that is written to over WebDAV', () => {
  let dav: WebdavShare;
  const agent = new Agent({ keepAlive: true });
  before(async () => (dav = await openWebdavShare('dav-reader')));
  after(async () => {
    agent.destroy();
    await dav.scratch.close();
  });

  /** The status of the answer. */
  const ask = (method: string, path: string, body = ''): Promise<number> =>
    new Promise((resolve, reject) => {
      const sending = request(dav.url(path), { method, agent, auth: `${USER}:${PASSWORD}` });
      sending.once('response', (response) =>
        response.resume().once('end', () => resolve(response.statusCode ?? 0)),
      );
      sending.once('error', reject).end(body);
    });

  it('is killed, and no new file, new folder or new content of a file is refused', async () => {
    const refused: string[] = [];
    const counts = { file: 0, folder: 0, content: 0 };
    let isOver = false;
    const goOn = async (what: keyof typeof counts, act: (count: number) => Promise<number>) => {
      while (!isOver) {
        const status = await act(counts[what]);
        if (status >= 300) refused.push(`${what} ${counts[what]}: ${status}`);
        counts[what] += 1;
      }
    };
    assert.equal(await ask('MKCOL', 'in/'), 201);
    const working = Promise.all([
      goOn('file', (count) => ask('PUT', `in/new-${count}`, `new ${count}`)),
      goOn('folder', (count) => ask('MKCOL', `in/folder-${count}/`)),
      goOn('content', (count) => ask('PUT', 'in/same', `content ${count}`)),
    ]);
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        await sleep(SETTLED_MS);
        const pid = await dav.daemon.rclonePid(SHARE);
        process.kill(pid, 'SIGKILL');
        await until('another one serves', async () => (await dav.daemon.rclonePid(SHARE)) !== pid, PATIENCE);
        const begun = { ...counts };
        await until(
          'all three go on',
          () =>
            Object.entries(begun).every(([what, count]) => counts[what as keyof typeof counts] > count + 1),
          PATIENCE,
        );
      }
    } finally {
      isOver = true;
      await working;
    }
    assert.deepEqual(refused, []);
    await dav.daemon.synced(60_000);
    const last = `new ${counts.file - 1}`;
    assert.equal(await readFile(dav.nas.path(SHARE, `in/new-${counts.file - 1}`), 'utf8'), last);
    assert.equal(await readFile(dav.nas.path(SHARE, 'in/same'), 'utf8'), `content ${counts.content - 1}`);
  });
});
