import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { unlessRoot } from '../../../runner/skips.ts';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createClock } from 'mountkeeper';
import { UnreadableFolders } from '../../../../plugins/mount/outage/unreadable-folders.ts';
import type { Reach } from '../../../../plugins/mount/outage/unreadable-folders.ts';
import { allProcesses, signalProcess } from '../../../support/platform/processes.ts';
import type { SeenProcess } from '../../../support/platform/processes.ts';
import { SLOW_MACHINE } from '../../../support/platform/cpu-pressure.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { timed, until } from '../../../support/platform/wait.ts';

const run = promisify(execFile);
/** What its name finds in a folder: the error of the opening, or of the listing. */
const LIST = `
$0 = shift;
opendir(my $folder, shift) or print("not opened: $!"), exit;
$! = 0;
my @names = readdir $folder;
print $! ? "not listed: $!" : "listed";`;

describe('folders that cannot be read', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let overlay: string;
  const said: unknown[] = [];
  const end = new AbortController();
  let folders: UnreadableFolders;

  const seenBy = async (program: string, folder: string): Promise<string> =>
    (await run('perl', ['-e', LIST, program, folder])).stdout;
  const helpers = async (): Promise<readonly SeenProcess[]> =>
    (await allProcesses()).filter(({ args }) => args[0]?.endsWith('perl') && args.at(-1) === overlay);
  const areAsked = async (count: number): Promise<void> =>
    void (await until(`${count} are asked`, async () => (await helpers()).length === count, {
      timeoutMs: 20_000,
    }));
  const create = (source: string): UnreadableFolders =>
    new UnreadableFolders({
      shareName: 's',
      mountPoint: overlay,
      source,
      mountTable: { find: () => Promise.resolve({ source: 'layer' } as never) },
      clock: createClock(),
      log: { warn: (...words: unknown[]) => said.push(words) } as never,
      end: end.signal,
    });

  before(async () => {
    scratch = await createScratch('unreadable');
    overlay = scratch.path('shown');
    const [low, through] = [scratch.path('low'), scratch.path('through')];
    for (const name of ['low/in', 'through', 'upper', 'work', 'shown'])
      mkdirSync(scratch.path(name), { recursive: true });
    const bindfs = spawn('bindfs', ['-f', low, through], { stdio: 'ignore' });
    await until('bindfs is up', () => isMounted(through), { timeoutMs: 10_000 });
    const layers = `lowerdir=${through},upperdir=${scratch.path('upper')},workdir=${scratch.path('work')}`;
    execFileSync('mount', ['-t', 'overlay', '-o', layers, 'layer', overlay]);
    scratch.defer(() => {
      for (const path of [overlay, through]) execFileSync('umount', ['-l', path]);
      return Promise.resolve();
    });
    mkdirSync(`${overlay}/here`);
    // What lies below gives errors from now on.
    bindfs.kill('SIGKILL');
    folders = create('layer');
  });
  after(async () => {
    end.abort();
    await areAsked(0);
    await scratch.close();
  });

  for (const reach of ['doubtful', 'shut'] as const satisfies readonly Reach[])
    it(`are not opened by smbd while the NAS is ${reach}, and by all others`, async () => {
      assert.match(await seenBy('smbd', overlay), /not listed/);
      folders.set(reach);
      await until('it is asked', async () => /not opened/.test(await seenBy('smbd', overlay)), {
        timeoutMs: 20_000,
      });
      assert.match(await seenBy('other', overlay), /not listed/);
      assert.equal(await seenBy('smbd', `${overlay}/here`), 'listed');
      folders.set('answers');
      await areAsked(0);
      assert.match(await seenBy('smbd', overlay), /not listed/);
    });

  it('are opened again within 3 s by all when the process that is asked stops, until another one is', async () => {
    folders.set('shut');
    await areAsked(1);
    const [stopped] = await helpers();
    assert.ok(stopped);
    await until('it is asked', async () => /not opened/.test(await seenBy('smbd', overlay)), {
      timeoutMs: 20_000,
    });
    signalProcess(stopped, 'SIGSTOP');
    const ms = await timed(seenBy('other', `${overlay}/here`));
    assert.ok(ms < 3_000 * SLOW_MACHINE, `${ms} ms`);
    await areAsked(0);
    await areAsked(1);
    assert.equal(said.length, 1, JSON.stringify(said));
  });

  it('are not looked after where something else lies over the share', async () => {
    said.length = 0;
    const others = create('another');
    others.set('shut');
    await until('it is said', () => said.length > 0, { timeoutMs: 5_000 });
    assert.match(JSON.stringify(said), /the share is not at/);
    others.set('answers');
  });
});

function isMounted(path: string): boolean {
  return execFileSync('cat', ['/proc/self/mountinfo'], { encoding: 'utf8' }).includes(` ${path} `);
}
