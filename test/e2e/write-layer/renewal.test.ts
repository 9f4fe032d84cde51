/**
 * What lies below a share with a write layer dies, hangs, is away and comes again, while users are at work.
 */
import assert from 'node:assert/strict';
import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stackPaths } from '../../../plugins/mount/layer/paths.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { LayerWorkbench } from '../../support/write-layer/workbench.ts';
import { checksumOf } from '../../support/nas/nas.ts';
import { rcloneOf } from '../../support/platform/processes.ts';
import { until } from '../../support/platform/wait.ts';

describe('the lower layer of a share with a write layer', () => {
  let house: LayerWorkbench;

  before(async () => {
    house = await LayerWorkbench.create({
      one: 100_000,
      'tree/sub/three': 3_000,
      others: 5_000,
      aaa: 40,
      stays: 50,
    });
  });
  after(() => house.scratch.close());

  const fresh = (): string => stackPaths(join(house.scratch.path('bench'), 'state'), 's').fresh;

  it("survives a kill of rclone: no user notices, and no file shows another's content", async () => {
    await utimes(house.nas.path('stays'), 1_700_000_000, 1_700_000_000);
    await house.sh('printf x >> stays');
    // One program stands in a folder of the remote, and writes through handles that it had before.
    const script =
      `cd "${house.root}/tree/sub" && exec 3>>"${house.root}/long" && printf before >&3 && ` +
      `read -r _ < "${house.scratch.path('go')}"; printf after >&3; wc -c < three; ` +
      'printf new > four';
    await runClient('mkfifo', [house.scratch.path('go')]);
    const writer = runClient('sh', ['-c', script], 20_000);
    await until('it is open', async () => (await house.layer.openForWriting()).has('long'), {
      timeoutMs: 3_000,
    });
    const [overlay, former] = [await house.bench.tools.mountTable.find(house.root), await rcloneOf(fresh())];
    assert.ok(former);
    await house.nas.put('since', 33);
    process.kill(former.pid, 'SIGKILL');
    await until(
      'another rclone is there',
      async () => ((await rcloneOf(fresh()))?.pid ?? former.pid) !== former.pid,
      { timeoutMs: 20_000, everyMs: 20 },
    );
    await house.mount.checkRemote(house.signal());
    assert.deepEqual(await house.bench.tools.mountTable.find(house.root), overlay, 'the very same overlay');
    await writeFile(house.scratch.path('go'), 'on\n');
    const { output, code } = await writer;
    assert.deepEqual([code, output.trim()], [0, '3000']);
    assert.equal(await house.sh('cat long tree/sub/four'), 'beforeafternew');
    // In another order than before, so that other files get the numbers that these had.
    const names = ['aaa', 'others', 'one', 'stays', 'tree/sub/three', 'since', 'aaa'];
    const sums = (
      await house.sh(`for round in 1 2; do for name in ${names.join(' ')}; do sha256sum $name; done; done`)
    ).split('\n');
    const wanted = await Promise.all(
      names.map(async (name) => {
        const upper = join(house.layer.upper, name);
        return `${await checksumOf(
          await stat(upper).then(
            () => upper,
            () => house.nas.path(name),
          ),
        )}  ${name}`;
      }),
    );
    assert.deepEqual(sums, [...wanted, ...wanted]);
    assert.equal((await house.mount.stats(house.signal())).trouble, undefined);
  });

  it('is replaced when it hangs', async () => {
    const former = await rcloneOf(fresh());
    assert.ok(former);
    process.kill(former.pid, 'SIGSTOP');
    await house.mount.checkAlive(1_000);
    await until(
      'another rclone is there',
      async () => ((await rcloneOf(fresh()))?.pid ?? former.pid) !== former.pid,
      { timeoutMs: 10_000, everyMs: 20 },
    );
    await house.mount.checkRemote(house.signal());
    assert.equal(await house.sh('wc -c < tree/sub/three'), '3000');
  });

  it('answers with errors while there is no rclone, never with nothing', async () => {
    await house.nas.stop();
    const former = await rcloneOf(fresh());
    process.kill(former?.pid ?? 0, 'SIGKILL');
    const isToldOf = async (): Promise<boolean> =>
      house.mount.stats(house.signal()).then(
        ({ trouble = '' }) => trouble.includes('nothing can be read from the remote just now'),
        () => false,
      );
    await until('the status says that there is none', isToldOf, { timeoutMs: 10_000 });
    await assert.rejects(house.mount.checkRemote(house.signal()), /connection refused/);
    const { code, output } = await runClient('sh', [
      '-c',
      `cat "${house.root}/one" | wc -c; cat "${house.root}/aaa"; ` +
        `ls "${house.root}/tree/sub"; rm "${house.root}/aaa"; rmdir "${house.root}/tree/sub"`,
    ]);
    assert.notEqual(code, 0);
    assert.doesNotMatch(output, /No such file/);
    assert.equal((await stat(house.nas.path('aaa'))).size, 40);
    await house.nas.start();
    await until(
      'the remote is back',
      async () =>
        house.mount.checkRemote(LayerWorkbench.clock.deadline(2_000)).then(
          () => true,
          () => false,
        ),
      { timeoutMs: 20_000 },
    );
    assert.equal(await house.sh('wc -c < aaa; ls tree/sub'), '40\nfour\nthree');
  });

  it('is mounted again when bindfs has ended', async () => {
    const writer = runClient(
      'sh',
      ['-c', `exec 3>>"${house.root}/last"; printf before >&3; sleep 2; printf after >&3`],
      20_000,
    );
    await until('it is open', async () => (await house.layer.openForWriting()).has('last'), {
      timeoutMs: 3_000,
    });
    process.kill(house.mount.pid, 'SIGKILL');
    assert.equal(await house.mount.exited, 'bindfs below the share has ended');
    await house.mount.kill();
    await house.mountAgain();
    await writer;
    assert.equal(await house.sh('cat last; wc -c < aaa'), 'beforeafter40');
  });

  it('comes up while its NAS is away, and shows nothing that would look like a deletion', async () => {
    await house.sh('printf kept > kept');
    assert.equal(await house.bench.mounter.mountsWithoutRemote?.(house.bench.spec('s')), true);
    assert.equal(
      await house.bench.mounter.mountsWithoutRemote?.(house.bench.spec('s', { remote_path: 'tree' })),
      false,
      'never seen there',
    );
    await house.mount.unmount();
    await house.nas.stop();
    await house.mountAgain();
    assert.match(
      (await house.mount.stats(house.signal())).trouble ?? '',
      /nothing can be read from the remote just now .*; until then its folders cannot be listed and nothing new can/,
    );
    assert.equal(house.mount.isUnreadable, true);
    assert.equal(await house.sh('cat kept; printf more >> kept; cat kept'), 'keptkeptmore');
    const { code, output } = await runClient('sh', [
      '-c',
      `cd "${house.root}"; ls; cat aaa; echo x > aaa; rm aaa; mkdir tree; rmdir tree/sub`,
    ]);
    assert.notEqual(code, 0);
    assert.doesNotMatch(output, /No such file|not empty/);
    await house.nas.start();
    await until(
      'the remote is there',
      async () =>
        house.mount.checkRemote(LayerWorkbench.clock.deadline(2_000)).then(
          () => true,
          () => false,
        ),
      { timeoutMs: 20_000 },
    );
    assert.equal(await house.sh('cat kept; wc -c < aaa; ls tree/sub'), 'keptmore40\nfour\nthree');
    assert.equal((await house.mount.stats(house.signal())).trouble, undefined);
    assert.equal(house.mount.isUnreadable, false);
  });
});
