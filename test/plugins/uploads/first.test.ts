import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, writeFileSync, appendFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { TestShare, settle, treeOf } from './share.ts';
import { join } from 'node:path';

describe('first', () => {
  const share = new TestShare();
  after(() => share.close());
  it('brings', async () => {
    mkdirSync(join(share.nas, 'a/x'), { recursive: true });
    mkdirSync(join(share.nas, 'd'), { recursive: true });
    writeFileSync(join(share.nas, 'a/f'), 'old');
    writeFileSync(join(share.nas, 'a/x/g'), 'gg');
    writeFileSync(join(share.nas, 'd/h'), 'hh');
    share.up();
    writeFileSync(share.at('new'), 'new');
    mkdirSync(share.at('n/m'), { recursive: true });
    writeFileSync(share.at('n/m/o'), 'o');
    appendFileSync(share.at('a/f'), '+');
    renameSync(share.at('a'), share.at('b'));
    renameSync(share.at('b/x'), share.at('y'));
    rmSync(share.at('d'), { recursive: true });
    writeFileSync(share.at('d'), 'file now');
    const want = treeOf(share.mount);
    const u = share.uploader();
    const looks = await settle(u);
    console.log(looks, share.conflicts);
    assert.deepEqual(treeOf(share.nas), want);
    await u.stop();
  });
});
