import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Clock } from 'mountkeeper';
import { hasMountTable, reread } from '../../../plugins/nfs/ganesha.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('the file in which NFS-Ganesha looks for mounts', () => {
  it('is there as a link into /proc, and not where it is missing or leads nowhere', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-mtab-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    await symlink('/proc/self/mounts', join(folder, 'mtab'));
    await symlink('/proc/self/nothing', join(folder, 'nowhere'));
    const found = await Promise.all(
      ['mtab', 'nowhere', 'missing'].map((name) => hasMountTable(join(folder, name))),
    );
    assert.deepEqual(found, [true, false, false]);
  });
});

/** Reads its exports when it is signalled; signals that come meanwhile become one. */
class SlowGanesha {
  readonly logFile: string;
  exports = '';
  signals = 0;
  has = '';
  private reading: string | undefined;
  private isTold = false;

  constructor(scratch: Scratch) {
    this.logFile = scratch.path('ganesha.log');
  }

  isAlive(): boolean {
    return true;
  }

  signal(): void {
    this.signals += 1;
    if (this.reading === undefined) this.reading = this.exports;
    else this.isTold = true;
  }

  /** It has read what stood in the file when it began. */
  finish(): void {
    this.has = this.reading ?? this.has;
    appendFileSync(this.logFile, 'Reread exports complete\n');
    this.reading = this.isTold ? this.exports : undefined;
    this.isTold = false;
  }
}

describe('what NFS-Ganesha confirms to have read', () => {
  it('is what the file holds, also where it had not confirmed the time before', async (t) => {
    const scratch = await createScratch('nfs-reread');
    t.after(() => scratch.close());
    let nowMs = 0;
    let isHasty = true;
    const clock = {
      monotonic: () => nowMs,
      sleep: (ms: number) => {
        if (isHasty) nowMs += ms;
        return new Promise((resolve) => setImmediate(resolve));
      },
    } as unknown as Clock;
    const server = new SlowGanesha(scratch);
    const told = (owes: boolean) => {
      const before = server.signals;
      const confirmed = reread(server, clock, { owes });
      return { confirmed, isSignalled: (times: number) => server.signals === before + times };
    };
    server.exports = 'both shares';
    assert.equal(await told(false).confirmed, false, 'a mount hangs');
    isHasty = false;
    server.exports = 'one share';
    const { confirmed, isSignalled } = told(true);
    await until('it is told', () => isSignalled(1), { timeoutMs: 5_000 });
    server.finish();
    await until('it is told once more', () => isSignalled(2), { timeoutMs: 5_000 });
    assert.equal(server.has, 'both shares');
    server.finish();
    assert.equal(await confirmed, true);
    assert.equal(server.has, 'one share');
  });
});
