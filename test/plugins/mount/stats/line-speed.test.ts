/** The measurement of a line, by a real rclone on a folder of the test's own. */
import assert from 'node:assert/strict';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { ShareSpec } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { runShortCommand } from '../../../../core/platform/processes/short-command.ts';
import type { MountTools } from '../../../../plugins/mount/lifecycle/tools.ts';
import { createRcloneFinder } from '../../../../plugins/mount/rclone/installed.ts';
import { measureLine } from '../../../../plugins/mount/stats/line-speed.ts';
import { currentRclone } from '../../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

describe('the line to a remote', () => {
  it('is measured by listing and by reading the largest file that is large enough', async (t) => {
    const scratch = await createScratch('line');
    t.after(() => scratch.close());
    const clock = createClock();
    const asked: string[][] = [];
    const processes: Pick<MountTools['processes'], 'run'> = {
      run: (spec) => {
        asked.push([...spec.args]);
        return runShortCommand(spec, clock);
      },
    };
    const tools = {
      clock,
      processes,
      finder: createRcloneFinder(processes),
      config: () => ({ mount: { rclone: currentRclone() } }),
      paths: { stateDir: scratch.path('state') },
      secrets: {},
    } as unknown as MountTools;
    const spec = {
      share: { name: 'files', remote_path: scratch.path('nas') },
      connection: { name: 'nas', type: 'local', options: {} },
    } as unknown as ShareSpec;
    const measure = () => measureLine(spec, tools, AbortSignal.timeout(60_000));

    await mkdir(scratch.path('nas', 'a', 'b', 'c'), { recursive: true });
    await writeFile(scratch.path('nas', 'a', 'small; one'), Buffer.alloc(1_000));
    await writeFile(scratch.path('nas', 'a', 'b', 'c', 'deep'), Buffer.alloc(10));
    const small = await measure();
    assert.deepEqual(small.sizes, [1_000], 'three levels');
    assert.equal(small.bytesPerSecond, undefined);
    assert.ok(small.listingMs > 1 && small.listingMs < 30_000);

    await writeFile(scratch.path('nas', 'film'), '');
    await truncate(scratch.path('nas', 'film'), 100_000_000);
    const { sizes, bytesPerSecond = 0 } = await measure();
    assert.deepEqual(
      sizes.toSorted((one, other) => one - other),
      [1_000, 100_000_000],
    );
    assert.ok(bytesPerSecond > 1_000_000, String(bytesPerSecond));
    const reads = asked.filter(([verb]) => verb === 'cat').map((args) => args.slice(1, 4));
    assert.deepEqual(reads.at(-1)?.slice(1), ['--count=67108864', '--discard'], 'no more than is needed');
    assert.equal(reads.length, 2);
    assert.ok(reads.every(([path]) => path?.endsWith(scratch.path('nas', 'film')) === true));

    // Where a login begins in a folder of its own, its files are not those of the server's root.
    const home = { ...spec, share: { ...spec.share, remote_path: '' } };
    const listed = { code: 0, stdout: '100000000;film\n', stderr: '' };
    const wanted: string[] = [];
    const inHome: Pick<MountTools['processes'], 'run'> = {
      run: async (command) => {
        if (command.args.includes('version')) return processes.run(command);
        if (command.args[0] === 'cat') wanted.push(command.args[1] ?? '');
        return { ...(await processes.run({ ...command, args: ['version'] })), ...listed };
      },
    };
    await measureLine(home, { ...tools, processes: inHome } as MountTools, AbortSignal.timeout(60_000));
    assert.ok(wanted.length > 0 && wanted.every((path) => path.endsWith(':film')), wanted.join());
    await assert.rejects(
      measureLine(
        { ...spec, share: { ...spec.share, remote_path: '/nowhere' } },
        tools,
        AbortSignal.timeout(60_000),
      ),
    );
  });
});
