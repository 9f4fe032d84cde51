/** Sending a file of a share: what is opened, what is not, and what happens when it breaks off. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { mkdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { createClock } from '../../../core/platform/clock.ts';
import { contentDisposition } from '../../../plugins/files/download/content-disposition.ts';
import { namesOf } from '../../../plugins/files/download/route.ts';
import { sendFile } from '../../../plugins/files/download/sender.ts';
import type { Sending, SendLimits } from '../../../plugins/files/download/sender.ts';
import { Slots } from '../../../plugins/files/download/slots.ts';
import { CAN_HANG_A_MOUNT, mountOfSilence, mountToHang } from '../../support/platform/hung-mount.ts';
import { allProcesses } from '../../support/platform/processes.ts';
import type { SeenProcess } from '../../support/platform/processes.ts';
import { rightsOfRoots, rootsRights } from '../../support/platform/rights.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { SKIPS, unlessRoot } from '../../runner/skips.ts';

const MIB = 1_048_576;
const SIGKILL = 9n;

const field = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(\\w+)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '';
/** A process of this test that sends a file. */
const isHelper = ({ pid, command }: SeenProcess): boolean =>
  command.includes('send-process.js') && field(pid, 'PPid') === String(process.pid);
/** SIGKILL was sent, and it is still there. */
const isKilled = (pid: number): boolean =>
  ((BigInt(`0x${field(pid, 'ShdPnd')}`) >> (SIGKILL - 1n)) & 1n) === 1n;

describe('a file of a share is sent', () => {
  let scratch: Scratch;
  let root: string;
  const clock = createClock();
  const limits = { answerMs: 10_000, silenceMs: 10_000 };
  interface Traits {
    readonly limits?: SendLimits;
    readonly from?: string;
    readonly gone?: () => void;
    readonly signal?: AbortSignal;
  }
  /** `from`: where something is mounted. Without it, a path in the share, which lies below the system's own root. */
  const send = (path: string, traits: Traits = {}): Promise<Sending> => {
    const { from, gone = () => undefined, signal = new AbortController().signal } = traits;
    const names = (from === undefined ? `${root.slice(1)}/${path}` : path).split('/');
    return sendFile({ root: from ?? '/', names }, { clock, signal, limits: traits.limits ?? limits, gone });
  };

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
    // Nobody reads it, so nothing moves.
    const slow = await send('sub/a "b".bin', { limits: { answerMs: 10_000, silenceMs: 300 } });
    const [error] = (await once(slow.content, 'error')) as [Error];
    assert.match(error.message, /^the mount does not go on$/);
    assert.equal(slow.content.destroyed, true);
  });

  it('not from the folder below a mount that has gone', async () => {
    await assert.rejects(send('empty', { from: root }), /not mounted any more/);
  });

  it('by a process whose end is told, once, whatever comes of it', async () => {
    const told: string[] = [];
    const hasLittle = async (): Promise<void> => {
      const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ');
      const own = (await allProcesses()).filter(({ pid }) => children.includes(String(pid)));
      const sending = own.find(({ args }) => args[1]?.endsWith('/send-process.js') === true);
      assert.deepEqual(await rightsOfRoots(sending?.pid ?? 0), rootsRights('dac_read_search'));
    };
    const gone = (of: string) => ({ gone: () => void told.push(of) });
    const waiting = (of: string): Promise<unknown> =>
      until(`the end of ${of}`, () => told.includes(of), { timeoutMs: 10_000 });
    await buffer((await send('empty', gone('whole'))).content);
    await waiting('whole');
    const missing = await send('nowhere', gone('missing'));
    missing.stop();
    await waiting('missing');
    const left = await send('sub/a "b".bin', gone('left'));
    assert.deepEqual(told, ['whole', 'missing'], 'one that sends is not at its end');
    if (unlessRoot === false) await hasLittle();
    left.stop();
    await waiting('left');
    await assert.rejects(send('empty', { ...gone('refused'), from: root }));
    await waiting('refused');
    const over = AbortSignal.abort();
    await assert.rejects(send('empty', { ...gone('aborted'), signal: over }));
    await waiting('aborted');
    assert.deepEqual(told, ['whole', 'missing', 'left', 'refused', 'aborted']);
  });

  it('at most four at once of one share, so that no share takes the places of all', () => {
    const slots = new Slots();
    const take = (share: string): (() => void) => {
      const slot = slots.take(share);
      return typeof slot === 'string' ? assert.fail(slot) : slot;
    };
    const [first] = ['hangs', 'hangs', 'hangs', 'hangs'].map(take);
    assert.match(String(slots.take('hangs')), /^4 downloads from this share are running/);
    for (const share of ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b']) take(share);
    assert.match(String(slots.take('c')), /^12 downloads are running/);
    first?.();
    first?.();
    take('hangs');
    assert.match(String(slots.take('hangs')), /from this share/, 'a slot is given back once');
  });

  it(
    'from a mount that hangs: not, and whoever asked is told in time',
    { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason },
    async () => {
      const mount = await mountToHang(scratch);
      mount.hang();
      try {
        await assert.rejects(
          send('folder/x', { limits: { ...limits, answerMs: 500 }, from: mount.mountPoint }),
          /does not answer/,
        );
      } finally {
        await mount.end();
      }
    },
  );

  it(
    'by a process that counts for as long as it hangs in the mount, immune to its end',
    { skip: !CAN_HANG_A_MOUNT && SKIPS.hangingMount.reason },
    async () => {
      const room = await createScratch('download-hangs');
      try {
        const mount = await mountOfSilence(room);
        const over = new AbortController();
        let isGone = false;
        const gone = (): void => void (isGone = true);
        const sending = send('x', { from: mount.mountPoint, signal: over.signal, gone });
        await until('the process waits for the NAS', mount.isAsked, { timeoutMs: 20_000 });
        const helper = (await allProcesses()).find(isHelper);
        assert.ok(helper);
        over.abort();
        await assert.rejects(sending, /does not answer/);
        await until('its end is pending', () => isKilled(helper.pid), { timeoutMs: 20_000 });
        assert.equal(isGone, false, 'it was killed, and hangs');
        await mount.end();
        await until('its end is told', () => isGone, { timeoutMs: 20_000 });
      } finally {
        await room.close();
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
