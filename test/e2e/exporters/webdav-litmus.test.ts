/** A share over WebDAV before litmus, the usual test suite for WebDAV servers. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { runClient } from '../../support/exports/client-programs.ts';
import { openWebdavShare, PASSWORD, USER } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';

/** What rclone's WebDAV server cannot do; the README of the plugin says why. */
const LITMUS_FAILS: Readonly<Record<string, readonly string[]>> = {
  basic: [],
  copymove: [],
  http: [],
  locks: ['fail_complex_cond_put', 'lock_shared'],
  props: ['propfind_invalid2', ...Array.from({ length: 8 }, () => 'propget')],
};

describe('a share over WebDAV', () => {
  let house: WebdavShare;
  before(async () => (house = await openWebdavShare('litmus')));
  after(() => (house as WebdavShare | undefined)?.scratch.close());

  const litmus = async (suite: string): Promise<string> => {
    const room = house.scratch.path(`litmus-${suite}`);
    await mkdir(room, { recursive: true });
    const { output } = await runClient(
      'sh',
      ['-c', `cd '${room}' && TESTS=${suite} exec litmus ${house.url()} ${USER} ${PASSWORD}`],
      180_000,
    );
    assert.match(output, /<- summary for/, output);
    return output;
  };

  it('passes litmus, but for the failures that its README names', async (t) => {
    const failed: Record<string, readonly string[]> = {};
    for (const suite of Object.keys(LITMUS_FAILS)) {
      let output = await litmus(suite);
      // Each begins by taking away the folder of the one before, whose files may be on their way to the NAS
      // in that moment.
      const [noBegin] = /begin\.+ FAIL.*/.exec(output) ?? [];
      if (noBegin !== undefined) {
        t.diagnostic(`${suite}, begun once more: ${noBegin}`);
        await house.daemon.synced(60_000);
        output = await litmus(suite);
      }
      failed[suite] = [...output.matchAll(/\d+\. (\w+)\.+ FAIL/g)].map((match) => match[1] ?? '');
    }
    assert.deepEqual(failed, LITMUS_FAILS);
  });
});
