/** Uploads that are broken off, and remotes that keep times otherwise than they say. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { until } from '../../../support/platform/wait.ts';
import { startRemote } from '../../../support/write-layer/uploader-remote.ts';
import { freeze } from '../../../../plugins/uploads/transfer/content.ts';
import {
  clock as realClock,
  refusal,
  settle,
  TestShare,
  treeOf,
} from '../../../support/write-layer/uploader-share.ts';

const signal = new AbortController().signal;

describe('an upload', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    share.up();
  });
  afterEach(() => share.close());

  it('meets no version of others where one attempt was not answered, and the next broke off', async () => {
    let attempts = 0;
    const uploader = share.uploader((call, when) => {
      if (call !== 'upload') return;
      attempts += when === 'before' ? 1 : 0;
      const isLost = attempts === 1 && when === 'after';
      if (isLost) appendFileSync(share.at('a'), ' second');
      if (isLost || (attempts === 2 && when === 'before')) throw refusal('The answer was lost.', 'silent');
    });
    try {
      writeFileSync(share.at('a'), 'first');
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual(share.conflicts, []);
    assert.deepEqual(treeOf(share.nas), new Map([['a', 'first second']]));
  });

  it('that was not answered proves no other content of the same size and time, where a NAS has no hashes', async () => {
    const write = (content: string): void => {
      writeFileSync(share.at('a'), content);
      utimesSync(share.at('a'), 1_700_000_000, 1_700_000_000);
    };
    let isLost = true;
    const uploader = share.uploader((call, when) => {
      if (!isLost || call !== 'upload' || when === 'before') return;
      isLost = false;
      write('second');
      throw refusal('The answer was lost.', 'silent');
    });
    try {
      write('first.');
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual(share.conflicts, []);
    assert.deepEqual(treeOf(share.nas), new Map([['a', 'second']]));
  });

  it('takes no content of others for its own that has the same size and time, where a NAS has no hashes', async () => {
    writeFileSync(share.at('a'), 'ours..');
    share.othersWrite('a', 'theirs', Math.floor(statSync(share.at('a')).mtimeMs / 1_000));
    share.notYetShown = new Set(['a']);
    const uploader = share.uploader();
    try {
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['ours..', 'theirs']);
    assert.equal(share.conflicts.length, 1);
  });

  it('is proved by its content where the NAS keeps times more coarsely than it says', async () => {
    share.precisionMs = 1;
    const uploader = share.uploader(undefined, { proof: 'read-back' });
    try {
      writeFileSync(share.at('a'), 'mine');
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual(share.conflicts, []);
  });

  it('is proved by reading back once where such a NAS has no hashes, and by its time from then on', async () => {
    share.precisionMs = 1;
    let reads = 0;
    const counted = (call: string, when: string): void => {
      if (call === 'readBack' && when === 'before') reads += 1;
    };
    let uploader = share.uploader(counted);
    writeFileSync(share.at('a'), 'mine');
    await settle(uploader);
    writeFileSync(share.at('b'), 'mine, too');
    await settle(uploader);
    await uploader.stop();
    assert.equal(share.shownMs, 2_100);
    share.shownMs = 0;
    uploader = share.uploader(counted);
    writeFileSync(share.at('c'), 'after a restart');
    await settle(uploader);
    await uploader.stop();
    assert.equal(reads, 1);
    assert.deepEqual(share.conflicts, []);
  });

  for (const { name, offMs } of [
    { name: 'shows when files arrive', offMs: 0 },
    { name: 'does so by a clock that is an hour off', offMs: 3_600_000 },
    { name: 'keeps days alone', offMs: -40_000_000 },
  ])
    for (const proof of ['size', 'hash', 'read-back'] as const)
      it(`is no conflict on a NAS that ${name} (proof by ${proof})`, async () => {
        share.ignoresTimesBy = offMs;
        let sent = 0;
        const uploader = share.uploader(
          (call, when) => {
            if (call === 'upload' && when === 'after') sent += 1;
            // The answer to the first is lost: it is found there by its content.
            if (call === 'upload' && when === 'after' && sent === 1) throw refusal('No answer.', 'silent');
          },
          { proof },
        );
        for (const content of ['first', 'other', 'longer than both']) {
          writeFileSync(share.at('a'), content);
          utimesSync(share.at('a'), 1_600_000_000, 1_600_000_000);
          await settle(uploader);
        }
        assert.equal(share.shownMs, 0, 'one file may be odd by itself');
        writeFileSync(share.at('b'), 'another file');
        utimesSync(share.at('b'), 1_600_000_000, 1_600_000_000);
        await settle(uploader);
        await uploader.stop();
        assert.equal(sent, 4);
        assert.equal(share.shownMs, Infinity);
        assert.deepEqual(share.conflicts, []);
        assert.deepEqual(
          treeOf(share.nas),
          new Map([
            ['a', 'longer than both'],
            ['b', 'another file'],
          ]),
        );
      });

  it('with a time that does not fit the protocol says nothing of the times of others', async () => {
    // As over SFTP: 2110 shows as 1973.
    const wrap = (path: string): void => {
      const { mtimeMs } = statSync(path);
      const second = Math.floor(mtimeMs / 1_000) % 2 ** 32;
      utimesSync(path, second, second);
    };
    share.leavesTaken = false;
    const { upload, ...rest } = share.remote();
    share.files = {
      ...rest,
      upload: async (local, path, options) => {
        await upload(local, path, options);
        wrap(join(share.nas, path));
      },
    };
    const uploader = share.uploader();
    for (const [name, content] of [
      ['a', 'odd'],
      ['b', 'odd, too'],
      ['a', 'odd again'],
    ] as const) {
      writeFileSync(share.at(name), content);
      utimesSync(share.at(name), 4_417_977_600, 4_417_977_600);
      await settle(uploader);
    }
    await uploader.stop();
    assert.equal(Math.floor(statSync(join(share.nas, 'a')).mtimeMs / 1_000), 4_417_977_600 - 2 ** 32);
    assert.equal(share.shownMs, 0);
    assert.deepEqual(share.conflicts, []);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['a', 'odd again'],
        ['b', 'odd, too'],
      ]),
    );
  });

  /** Sends `a` with that content; at the first such call something happens. */
  const send = async (
    content: string,
    [call, when]: readonly [call: string, when: 'before' | 'after'],
    happens: () => void,
  ): Promise<void> => {
    let isFirst = true;
    const uploader = share.uploader((called, at) => {
      if (called !== call || at !== when || !isFirst) return;
      isFirst = false;
      happens();
    });
    writeFileSync(share.at('a'), content);
    await settle(uploader);
    await uploader.stop();
  };
  const unanswered = (): never => {
    throw refusal('No answer.', 'silent');
  };
  const assertBothStay = (ours: string): void => {
    assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'THEIRS');
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['THEIRS', ours]);
  };

  for (const precisionMs of [1_000, Infinity])
    it(`leaves what others save with its size while its answer is lost (precision ${precisionMs})`, async () => {
      share.precisionMs = precisionMs;
      share.ignoresTimesBy = 0;
      await send('theMin', ['upload', 'after'], () => {
        share.othersWrite('a', 'THEIRS');
        unanswered();
      });
      assertBothStay('theMin');
    });

  it('leaves what others save with its size while it is read back from a NAS without times', async () => {
    share.precisionMs = Infinity;
    share.ignoresTimesBy = 0;
    await send('theMin', ['readBack', 'before'], () => share.othersWrite('a', 'THEIRS'));
    assertBothStay('theMin');
  });

  it('may be replaced on a NAS without times by what users write before it is read back', async () => {
    share.precisionMs = Infinity;
    share.ignoresTimesBy = 5_000;
    await send('short', ['readBack', 'before'], () => {
      writeFileSync(share.at('a'), 'longer than before');
      unanswered();
    });
    assert.deepEqual(treeOf(share.nas), new Map([['a', 'longer than before']]));
    assert.deepEqual(share.conflicts, []);
  });

  it('leaves what others save with its size while users write again, on a NAS without times', async () => {
    share.precisionMs = Infinity;
    share.ignoresTimesBy = 0;
    await send('theMin', ['upload', 'after'], () => {
      share.othersWrite('a', 'THEIRS');
      writeFileSync(share.at('a'), 'longer than before');
      unanswered();
    });
    assertBothStay('longer than before');
  });

  for (const { name, change } of [
    { name: 'turns ends of lines', change: (text: string) => text.replaceAll('\n', '\r\n') },
    { name: 'changes letters', change: (text: string) => text.toUpperCase() },
  ])
    it(`leaves one copy at the most where the NAS ${name}, and is stuck with a sentence`, async () => {
      share.ignoresTimesBy = 5_000;
      share.leavesTaken = false;
      const { upload, ...rest } = share.remote();
      share.files = {
        ...rest,
        upload: async (local, path, options) => {
          await upload(local, path, options);
          writeFileSync(join(share.nas, path), change(readFileSync(join(share.nas, path), 'utf8')));
        },
      };
      const uploader = share.uploader();
      writeFileSync(share.at('a'), 'one\ntwo\n');
      utimesSync(share.at('a'), 1_600_000_000, 1_600_000_000);
      for (let looks = 0; looks < 20; looks += 1) {
        uploader.flush();
        await uploader.look(signal);
        await uploader.settled();
      }
      const [entry] = uploader.queue();
      assert.equal(entry?.state, 'stuck');
      assert.match(entry?.reason ?? '', /shows another file/);
      await uploader.stop();
      assert.ok(treeOf(share.nas).size <= 2, [...treeOf(share.nas).keys()].join(', '));
    });

  it('is put beside no second time where others change its copy, and goes on once that is gone', async () => {
    share.othersWrite('a', 'before');
    let sent = 0;
    const uploader = share.uploader((call, when) => {
      if (call !== 'upload') return;
      if (when === 'before') sent += 1;
      if (when === 'after' && sent === 1) {
        const copy = readdirSync(share.nas).find((name) => name !== 'a')!;
        share.othersWrite(copy, 'changed by others');
        throw refusal('No answer.', 'silent');
      }
    });
    writeFileSync(share.at('a'), 'mine');
    await uploader.look(signal);
    share.othersWrite('a', 'theirs', 1_720_000_000);
    for (let looks = 0; looks < 12; looks += 1) {
      uploader.flush();
      await uploader.look(signal);
      await uploader.settled();
    }
    assert.match(
      uploader.queue()[0]?.reason ?? '',
      /shows another file than the one that was brought to 'a \(/,
    );
    const copy = readdirSync(share.nas).find((name) => name !== 'a')!;
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['changed by others', 'theirs']);
    rmSync(join(share.nas, copy));
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['mine', 'theirs']);
  });

  for (const again of ['saved again', 'MINE'])
    it(`goes on beside others' on a NAS without times, where its answer was lost: ${again}`, async () => {
      share.precisionMs = Infinity;
      share.ignoresTimesBy = 5_000;
      share.othersWrite('a', 'before');
      let sent = 0;
      const uploader = share.uploader((call, when) => {
        if (call !== 'upload' || when !== 'after') return;
        sent += 1;
        if (sent > 1) return;
        writeFileSync(share.at('a'), again);
        throw refusal('No answer.', 'silent');
      });
      writeFileSync(share.at('a'), 'mine');
      await uploader.look(signal);
      share.othersWrite('a', 'theirs', 1_720_000_000);
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual([...treeOf(share.nas).values()].sort(), ['theirs', again].sort());
      assert.equal(share.conflicts.length, 1);
    });

  it('lets others leave the disk when it goes on for longer than a minute', async () => {
    let goOn: () => void = () => undefined;
    let isLong = false;
    let ahead = 0;
    const now = performance.now();
    const clock = { ...realClock, monotonic: () => performance.now() - now + ahead };
    const uploader = share.uploader(
      (call, when) =>
        call === 'upload' && when === 'before' && isLong
          ? new Promise((resolve) => (goOn = resolve))
          : undefined,
      {
        clock,
        clean: {
          listingAgeMs: () => 3_600_000,
          keepMs: () => 3_600_000,
          minFreeBytes: () => (isLong ? Number.MAX_SAFE_INTEGER : 0),
        },
      },
    );
    try {
      writeFileSync(share.at('a'), 'there');
      await settle(uploader);
      assert.ok(existsSync(join(share.upper, 'a')));
      isLong = true;
      writeFileSync(share.at('long'), 'on its way');
      const look = async (): Promise<void> => {
        uploader.flush();
        await uploader.look(signal);
        await realClock.sleep(100, signal);
      };
      // It is chosen to make room, and waits for the upload.
      ahead = 61_000;
      for (let looks = 0; looks < 4; looks += 1) await look();
      assert.ok(existsSync(join(share.upper, 'a')));
      ahead = 122_500;
      for (let looks = 0; looks < 40 && existsSync(join(share.upper, 'a')); looks += 1) await look();
      assert.ok(!existsSync(join(share.upper, 'a')));
      assert.ok(existsSync(join(share.upper, 'long')));
    } finally {
      goOn();
      await uploader.stop();
    }
  });

  it('is not begun with what a failing disk gives of a file; a copy of a former state is never sent', async () => {
    const [file, path] = [join(share.root, 'sending-x'), join(share.root, 'local')] as const;
    mkdirSync(share.records, { recursive: true });
    writeFileSync(path, 'half');
    const handle = await open(path);
    const local = { inode: '1', bytes: 4, modifiedNs: '1700000000000000000', changedNs: '0' };
    try {
      assert.equal(await freeze({ file, handle }, local), true);
      assert.equal(await freeze({ file, handle }, { ...local, bytes: 8 }), false);
      assert.equal(await freeze({ file, handle }, local), true);
      writeFileSync(path, 'more than half');
      assert.equal(await readFile(file, 'utf8'), 'half');
      assert.equal(await freeze({ file, handle }, { ...local, bytes: 5 * 2 ** 20 }), true);
      assert.equal(await readFile(file, 'utf8'), 'more than half');
    } finally {
      await handle.close();
    }
  });

  it('that takes long and is new replaces nothing that others save meanwhile', async () => {
    const nas = join(share.nas, 'a');
    const remote = await startRemote('sftp', share.nas);
    share.files = remote.files;
    const names: string[][] = [];
    const uploader = share.uploader(async (call, when) => {
      if (call !== 'upload' || when !== 'before' || names.length > 0) return;
      names.push([]);
      void until('it is being sent', () => readdirSync(share.nas).length > 0, {
        timeoutMs: 10_000,
        everyMs: 1,
      }).then(() => {
        names.push(readdirSync(share.nas));
        writeFileSync(nas, 'of others');
      });
    });
    try {
      writeFileSync(share.at('a'), '');
      truncateSync(share.at('a'), 65 * 2 ** 20);
      await settle(uploader);
    } finally {
      await uploader.stop();
      await remote.close();
    }
    assert.ok(names[1]?.some((name) => name.startsWith('.mountkeeper-upload-')));
    assert.equal(readFileSync(nas, 'utf8'), 'of others');
    const [conflict] = share.conflicts;
    assert.equal(statSync(join(share.nas, conflict?.copy ?? '')).size, 65 * 2 ** 20);
    assert.deepEqual(readdirSync(share.nas).sort(), ['a', conflict?.copy ?? ''].sort());
  });
});
