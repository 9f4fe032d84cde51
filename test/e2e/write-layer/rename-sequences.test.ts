/**
 * Renames of folders with other changes in them before the NAS has moved them, each beside all the others on one share:
 * no fault is injected, and nobody else writes. `MOUNTKEEPER_RENAMES_SEED` and `MOUNTKEEPER_RENAMES_COUNT` draw others.
 */
import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { after, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { differences, treeOf } from '../../support/write-layer/folder-tree.ts';
import { drawnSequences, ONCE_WRONG, START } from '../../support/write-layer/rename-sequences.ts';

const SEED = Number(process.env['MOUNTKEEPER_RENAMES_SEED'] ?? 1);
const COUNT = Number(process.env['MOUNTKEEPER_RENAMES_COUNT'] ?? 16);
const LENGTH = 4;
const DONE = 'done';

/** How many of the commands were done; the first that is refused ends the sequence, as in a program that looks. */
async function played(folder: string, commands: readonly string[]): Promise<[count: number, said: string]> {
  const script = [`cd '${folder}'`, ...commands.map((command) => `(${command}); echo ${DONE}`)].join('; ');
  const { output } = await runClient('sh', ['-ec', script], 60_000);
  const lines = output.trim().split('\n');
  return [lines.filter((line) => line === DONE).length, lines.filter((line) => line !== DONE).join('; ')];
}

describe('renames of folders with other changes in them', { timeout: 300_000 }, () => {
  let scratch: Scratch;
  after(() => scratch.close());

  it(`have the outcome that they have on a local disk (seed ${SEED})`, async (t) => {
    scratch = await createScratch('rename-sequences');
    const sequences = [...ONCE_WRONG, ...drawnSequences(SEED, COUNT, LENGTH)];
    const files = sequences.flatMap((_, index) =>
      Object.entries(START).map(([path, bytes]) => [`team/${index}/${path}`, bytes] as const),
    );
    const nas = await Nas.create(scratch, { files: Object.fromEntries(files) });
    await cp(nas.path('team'), scratch.path('local'), { recursive: true });
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: { mount: { write_back: '2s' } },
    });
    await daemon.start();
    await daemon.healthy(['team']);
    /** Stopped in the middle of a command of several steps: nobody can say what should be there. */
    const halfDone = new Set<number>();
    let refused = 0;
    await Promise.all(
      sequences.map(async (sequence, index) => {
        const commands = sequence.split('; ');
        const [count, said] = await played(`${daemon.mountPoint('team')}/${index}`, commands);
        if (count < commands.length) {
          // While the NAS moves a folder, a call in it may answer with an error, which loses nothing.
          t.diagnostic(`${commands[count]} in ${sequence}: ${said}`);
          refused += 1;
          if (/^rm -r|&&/.test(commands[count] ?? '')) halfDone.add(index);
        }
        const done = commands.slice(0, count).filter((command) => !command.startsWith('sleep'));
        await played(scratch.path('local', String(index)), done);
      }),
    );
    assert.ok(refused <= sequences.length / 2, `${refused} of ${sequences.length} were refused`);
    await daemon.synced(120_000);
    const wrong = sequences.flatMap((sequence, index) => {
      if (halfDone.has(index)) return [];
      const place = String(index);
      const found = differences(treeOf(nas.path('team', place)), treeOf(scratch.path('local', place)));
      return found.length === 0 ? [] : [`${sequence}: ${found.join('; ')}`];
    });
    assert.deepEqual(wrong, []);
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
  });
});
