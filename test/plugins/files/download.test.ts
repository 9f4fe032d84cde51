/** Sending a file of a share: what is opened, what is not, and what happens when it breaks off. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { createClock } from '../../../core/platform/clock.ts';
import { contentDisposition } from '../../../plugins/files/download/content-disposition.ts';
import { namesOf } from '../../../plugins/files/download/route.ts';
import { sendFile } from '../../../plugins/files/download/sender.ts';
import type { Sending } from '../../../plugins/files/download/sender.ts';
import { CAN_HANG_A_MOUNT, mountToHang } from '../../support/platform/hung-mount.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';

const MIB = 1_048_576;

describe('a file of a share is sent', () => {
  let scratch: Scratch;
  let root: string;
  const clock = createClock();
  const limits = { answerMs: 10_000, silenceMs: 10_000 };
  const send = (path: string, given = limits, from = root): Promise<Sending> =>
    sendFile(
      { root: from, names: path.split('/') },
      { clock, signal: new AbortController().signal, limits: given },
    );

  before(async () => {
    scratch = await createScratch('download');
    root = scratch.path('share');
    await mkdir(`${root}/sub`, { recursive: true });
    await writeFile(scratch.path('secret'), 'outside');
    await writeFile(`${root}/sub/a "b".bin`, Buffer.alloc(3 * MIB, 7));
    await writeFile(`${root}/empty`, '');
    await symlink(scratch.path('secret'), `${root}/link`);
    await symlink('sub', `${root}/folder-link`);
    await symlink(scratch.path(''), `${root}/out`);
    spawnSync('mkfifo', [`${root}/pipe`]);
  });
  after(() => scratch.close());

  it('whole, with its size and time', async () => {
    const { answer, content } = await send('sub/a "b".bin');
    assert.deepEqual([answer.ok, answer.ok && answer.bytes], [true, 3 * MIB]);
    assert.deepEqual(await buffer(content), await readFile(`${root}/sub/a "b".bin`));
    assert.equal((await buffer((await send('empty')).content)).length, 0);
  });

  it('and nothing else: no link is followed, no pipe is waited for', async () => {
    for (const [path, reason] of [
      ['link', 'not-a-file'],
      ['out/secret', 'missing'],
      ['folder-link/a "b".bin', 'missing'],
      ['pipe', 'not-a-file'],
      ['sub', 'not-a-file'],
      ['nowhere', 'missing'],
    ] as const) {
      const { answer, stop } = await send(path);
      assert.deepEqual(answer, { ok: false, reason }, path);
      stop();
    }
  });

  it('or breaks off with an error, never with an end in order', async () => {
    await writeFile(`${root}/large`, Buffer.alloc(20 * MIB));
    const { content } = await send('large');
    await truncate(`${root}/large`, MIB);
    await assert.rejects(buffer(content), /broke off/);
    const slow = await send('sub/a "b".bin', { answerMs: 10_000, silenceMs: 300 });
    await new Promise((resolve) => slow.content.once('close', resolve));
    await assert.rejects(buffer(slow.content), /does not go on|prematurely|closed/i);
  });

  it(
    'from a mount that hangs: not, and whoever asked is told in time',
    { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason },
    async () => {
      const mount = await mountToHang(scratch);
      mount.hang();
      try {
        await assert.rejects(
          send('folder/x', { ...limits, answerMs: 500 }, mount.mountPoint),
          /does not answer/,
        );
      } finally {
        await mount.end();
      }
    },
  );

  it('by a plain path alone', () => {
    for (const path of [
      '',
      '/etc/passwd',
      '../x',
      'a/../../x',
      'a//b',
      './a',
      'a/.',
      'a\0b',
      'x'.repeat(5_000),
      5,
    ])
      assert.equal(namesOf(path), undefined, String(path));
    assert.deepEqual(namesOf('a/..b/c d'), ['a', '..b', 'c d']);
  });

  it('under a name that ends no header and reads as no other', () => {
    assert.equal(
      contentDisposition('a"b\r\nset-cookie: x.txt'),
      `attachment; filename="a_b__set-cookie_ x.txt"; filename*=UTF-8''a%22b__set-cookie%3A%20x.txt`,
    );
    assert.match(contentDisposition('照片 (1)\u202egpj.exe'), /%E7%85%A7%E7%89%87%20%281%29_gpj\.exe$/);
    for (const name of ['\ud800', '😀'.repeat(300), '../../etc/passwd', "*'()!"])
      assert.match(
        contentDisposition(name),
        /^attachment; filename="[\w .-]*"; filename\*=UTF-8''[\w%.~-]*$/,
      );
  });
});
