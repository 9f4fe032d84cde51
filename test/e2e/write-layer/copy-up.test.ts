// @load loud
/**
 * Others replace files on the NAS while these are being copied up for a user's change, or in the moment in
 * which their listing is read anew: both versions stay.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, renameSync, statSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { stackPaths } from '../../../plugins/mount/layer/paths.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { usedPaths } from '../../../plugins/mount/layer/upper/open-for-writing.ts';
import { processesNaming, signalProcess } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const SHARE = 'team';
/** Of file content; listings are as fast as ever. */
const DOWN = '1M';
const BYTES = 16_000_000;
const SYNCED_MS = 60_000;
/** Changed here in the moment in which the listing is read anew; the last one by nobody else. */
const MOMENT = ['deleted', 'saved', 'renamed', 'alone'];

/** Bytes that have come to a port of this machine, and that its server has not read. */
function unread(port: number): number {
  const local = port.toString(16).toUpperCase().padStart(4, '0');
  const established = new RegExp(`^ *\\d+: [\\dA-F]+:${local} [\\dA-F:]+ 01 [\\dA-F]+:([\\dA-F]+) `, 'gm');
  const queues = readFileSync('/proc/net/tcp', 'latin1').matchAll(established);
  return [...queues].reduce((sum, [, bytes = '0']) => sum + Number.parseInt(bytes, 16), 0);
}

describe('a file that others replace while it is copied up', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let root: string;

  before(async () => {
    scratch = await createScratch('copy-up');
    nas = await Nas.create(scratch, {
      files: {
        // A refresh takes 8 s beside such a copy, and more on a busy machine: it must end before the copy does.
        'team/changed': 2 * BYTES,
        'team/kept': BYTES,
        'team/former': BYTES,
        'team/one': 10,
        ...Object.fromEntries(MOMENT.map((name) => [`team/${name}`, 100])),
      },
    });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: 'team' }],
      sections: { bandwidth: { down: DOWN } },
    });
    root = daemon.mountPoint(SHARE);
    await daemon.start();
    await daemon.healthy([SHARE]);
    await runClient('ls', ['-lR', root]);
    await daemon.synced(SYNCED_MS);
  });
  after(() => scratch.close());

  const conflicts = async (): Promise<readonly { readonly path: string; readonly copy: string }[]> =>
    (
      await daemon.get<{
        readonly conflicts: readonly {
          readonly path: string;
          readonly copy: string;
        }[];
      }>(`/api/queue/${SHARE}`)
    ).body.conflicts;

  /** Runs a script on the share that has a file copied up, and `meanwhile` while the copy is under way. */
  const duringCopy = async (name: string, script: string, meanwhile: () => Promise<void>): Promise<void> => {
    const { source, place } = stackPaths(daemon.stateDir, SHARE);
    assert.ok(existsSync(source), 'the stack is where the test looks');
    const user = runClient('sh', ['-c', `cd "${root}" && ${script}`], 60_000);
    await until(`${name} is being copied up`, () => usedPaths(place).has(name), { timeoutMs: 10_000 });
    await meanwhile();
    assert.ok(usedPaths(place).has(name), 'the copy was still under way');
    const { code, output } = await user;
    assert.equal(code, 0, output);
    await daemon.synced(SYNCED_MS);
  };
  const replace = async (name: string): Promise<string> => {
    await nas.put('others', BYTES + 4_000);
    renameSync(nas.path('others'), nas.path('team', name));
    return nas.checksum(`team/${name}`);
  };
  const refresh = async (): Promise<void> => {
    const { body } = await daemon.request<{ ok: boolean }>('POST', `/api/refresh/${SHARE}`, {});
    assert.equal(body.ok, true, JSON.stringify(body));
  };

  it('keeps its place, and what was written here lies beside it', async () => {
    let theirs = '';
    await duringCopy('changed', 'printf mine >> changed', async () => {
      theirs = await replace('changed');
      await refresh();
    });
    assert.equal(await nas.checksum('team/changed'), theirs, 'the version of the others');
    const [conflict, ...more] = await conflicts();
    assert.deepEqual([conflict?.path, more], ['changed', []]);
    assert.match(readFileSync(nas.path('team', conflict!.copy), 'latin1').slice(-4), /mine/);
  });

  it('keeps its content when it has just been renamed here', async () => {
    const before = readFileSync(nas.path('team/former'));
    const user = runClient('sh', ['-c', `cd "${root}" && mv former later && printf mine >> later`], 60_000);
    const { code, output } = await user;
    assert.equal(code, 0, output);
    await daemon.synced(SYNCED_MS);
    assert.ok(readFileSync(nas.path('team/later')).equals(Buffer.concat([before, Buffer.from('mine')])));
    assert.equal(await nas.has('team/former'), false);
  });

  it('is no conflict when its listing alone is read again', async () => {
    const before = (await conflicts()).length;
    await duringCopy('kept', 'printf mine >> kept', refresh);
    assert.equal((await conflicts()).length, before);
    assert.equal(statSync(nas.path('team', 'kept')).size, BYTES + 4);
    assert.deepEqual(
      readdirSync(nas.path('team')).filter((name) => name.startsWith('kept')),
      ['kept'],
    );
  });

  it('is no conflict when it is opened after others had replaced it', async () => {
    const before = (await conflicts()).length;
    await nas.put('team/one', 4_000);
    await refresh();
    const { code, output } = await runClient('sh', ['-c', `printf mine >> "${root}/one"`]);
    assert.equal(code, 0, output);
    await daemon.synced(SYNCED_MS);
    assert.equal((await conflicts()).length, before);
    assert.equal(statSync(nas.path('team', 'one')).size, 4_004);
  });

  it('stays also where users delete, replace, rename or make one while the listing is read', async () => {
    const before = await conflicts();
    const theirs = [...MOMENT.filter((name) => name !== 'alone'), 'made'];
    for (const name of theirs) await nas.put(`team/${name}`, 5_000);
    const sums = await Promise.all(theirs.map((name) => nas.checksum(`team/${name}`)));
    const [server, ...more] = await processesNaming(`${nas.dir}.cache`);
    assert.ok(server && more.length === 0, 'the one process that is the NAS');
    signalProcess(server, 'SIGSTOP');
    const reading = refresh();
    try {
      // The daemon holds what shows, asks the NAS, and gets no answer. What is asked first may be whether it is there.
      await Promise.all([
        sleep(1_000),
        until('the NAS is asked', () => unread(nas.port) > 0, {
          timeoutMs: 10_000,
        }),
      ]);
      const script = `cd "${root}" && rm deleted && printf mine > tmp && mv tmp saved && mv renamed here &&
        printf mine > made && printf mine > alone`;
      const { code, output } = await runClient('sh', ['-c', script], 20_000);
      assert.equal(code, 0, output);
    } finally {
      signalProcess(server, 'SIGCONT');
    }
    await reading;
    await daemon.synced(SYNCED_MS);
    assert.deepEqual(await Promise.all(theirs.map((name) => nas.checksum(`team/${name}`))), sums);
    assert.equal(statSync(nas.path('team', 'alone')).size, 4);
    const told = (await conflicts()).slice(before.length);
    assert.deepEqual(told.map(({ path }) => path).sort(), ['deleted', 'here', 'made', 'saved']);
    for (const { path, copy } of told.filter(({ path: one }) => one === 'saved' || one === 'made'))
      assert.equal(readFileSync(nas.path('team', copy), 'latin1'), 'mine', path);
  });
});
