/** What the proxy of WebDAV holds of uploads is told of: a real socket, and what comes over it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { KeptUploads } from '../../../../plugins/webdav/exporter/kept-uploads.ts';
import { webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

it('content that waits of uploads over WebDAV is told of, with its place, for as long as it waits', async (t) => {
  const scratch = await createScratch('kept-uploads');
  const paths = webdavPaths(scratch.path('state'));
  await mkdir(paths.own, { recursive: true });
  const one = { share: 'team', path: 'in/a', file: '/spool/one.part' };
  let answer: unknown = [one, { ...one, file: '/spool/two.part' }];
  const asked: (string | undefined)[] = [];
  const proxy = createServer(({ url }, response) => {
    asked.push(url);
    response.end(JSON.stringify(answer));
  });
  await once(proxy.listen(paths.control), 'listening');
  t.after(async () => {
    proxy.closeAllConnections();
    proxy.close();
    await scratch.close();
  });
  const kept = new KeptUploads({ clock: createClock(), log: collectLog().log, paths });
  const read = async (): Promise<readonly string[]> => {
    await kept.read(AbortSignal.timeout(5_000));
    return kept.notices().map(({ level, message }) => `${level} ${message}`);
  };
  assert.deepEqual(kept.notices(), []);
  const [told = '', ...others] = await read();
  assert.match(
    told,
    /^warning WebDAV: an upload of 'team\/in\/a' .*kept in \/spool\/one\.part.*\(and 1 more\)$/,
  );
  assert.deepEqual([others, asked], [[], ['/kept']]);
  // Whoever breaks into the proxy says nothing in another form, and what was known stays.
  answer = [{ share: 'team' }];
  assert.deepEqual(await read(), [told]);
  answer = [];
  assert.deepEqual(await read(), []);
});
