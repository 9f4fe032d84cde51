/**
 * Paths that are too long for any call, which users make step by step, or over NFS: what has one waits, named, and all
 * else goes up. On a real overlay.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { leftWaiting, TestShare } from '../../../support/write-layer/uploader-share.ts';

const TOO_LONG = /^stuck: Its path is too long for this machine/;
const LEFT = /It may be what was renamed to a path that is too long/;
/** Of each of the folders in one another. */
const NAME = 'n'.repeat(200);
const DEEP = 22;

describe('an entry whose path is too long', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'of the NAS'));
    writeFileSync(join(share.nas, 'of the NAS/x'), 'x');
    share.othersWrite('seen', 'first', 1_700_000_000);
    share.up();
  });
  afterEach(() => {
    share.down();
    // What Node goes by is too long here, too.
    execFileSync('rm', ['-rf', share.root]);
  });

  /** Goes down into the folders, which are made, and does it there. */
  const below = (script: string): void => {
    const steps = Array.from({ length: DEEP }, () => `mkdir -p ${NAME} && cd -P ${NAME}`);
    execFileSync('bash', ['-c', [...steps, script].join(' && ')], { cwd: share.mount });
  };
  const left = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(await leftWaiting(share)).map(([path, why]) => [path.replaceAll(`${NAME}/`, ''), why]),
    );

  it('waits with a sentence, and nothing else waits for it', async () => {
    below('printf deep > deep');
    writeFileSync(share.at('seen'), 'changed');
    writeFileSync(share.at('new'), 'new');
    const waiting = await left();
    assert.match(waiting['deep'] ?? '', TOO_LONG);
    assert.ok(
      Object.values(waiting).every((why) => TOO_LONG.test(why)),
      JSON.stringify(waiting),
    );
    assert.equal(readFileSync(join(share.nas, 'seen'), 'utf8'), 'changed');
    assert.equal(readFileSync(join(share.nas, 'new'), 'utf8'), 'new');
    assert.ok(existsSync(join(share.nas, NAME, NAME)));
  });

  it('keeps what it was renamed from on the NAS, and goes there once its path is shorter', async () => {
    below(`mv "${share.at('of the NAS')}" moved`);
    writeFileSync(share.at('new'), 'new');
    const waiting = await left();
    assert.match(waiting['moved'] ?? '', TOO_LONG);
    assert.match(waiting['of the NAS'] ?? '', LEFT);
    assert.equal(readFileSync(join(share.nas, 'of the NAS/x'), 'utf8'), 'x');
    assert.ok(existsSync(join(share.nas, 'new')));
    below(`mv moved "${share.at('back')}"`);
    for (const why of Object.values(await left())) assert.match(why, TOO_LONG);
    assert.equal(readFileSync(join(share.nas, 'back/x'), 'utf8'), 'x');
    assert.ok(!existsSync(join(share.nas, 'of the NAS')));
    assert.deepEqual(share.conflicts, []);
  });
});
