// @load quiet
/**
 * Files of the NAS that users rename, none of whose data are here. While the NAS has one by its new name and the
 * share still looks for it by the former one, nobody may miss it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const FILES = Array.from({ length: 20 }, (_, index) => index);
/**
 * A call that waits while the NAS's listing is read anew has come by the former name. One program has one call under
 * way, so it misses one file each time, of which there are a few.
 */
const FEW = 6;

/** Renames all files of the folder, and asks for each of them for some seconds. Prints what was missing, and why. */
const RENAMES = `
const { readdirSync, renameSync, statSync } = require('node:fs');
process.chdir(process.argv[1]);
const names = readdirSync('.').filter((name) => name.startsWith('old'));
for (const name of names) renameSync(name, 'new' + name);
const end = Date.now() + Number(process.argv[2]) * 1000;
const missing = {};
const turn = () => {
  for (const name of names) {
    try { statSync('new' + name); } catch ({ code }) { (missing['new' + name] ??= new Set()).add(code); }
  }
  if (Date.now() < end) return setTimeout(turn, 5);
  for (const name in missing) console.log(name, ...missing[name]);
};
turn();`;

describe('files that are renamed while somebody asks for them', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  before(async () => {
    scratch = await createScratch('renamed-files');
    const names = FILES.map((index) => [`team/old${index}`, 2_000] as const);
    nas = await Nas.create(scratch, { files: Object.fromEntries(names) });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: { mount: { write_back: '1s' } },
    });
    await daemon.start();
    await daemon.healthy(['team']);
  });
  after(() => scratch.close());

  it('are there all the time, but for calls that waited meanwhile, and can be renamed again', async () => {
    const folder = daemon.mountPoint('team');
    const { code, output } = await runClient(process.execPath, ['-e', RENAMES, folder, '6']);
    assert.equal(code, 0, output);
    assert.ok(output.split('\n').filter((line) => line !== '').length <= FEW, output);
    await daemon.synced(60_000);
    const back = FILES.map((index) => `mv newold${index} back${index}`).join(' && ');
    const again = await runClient('sh', ['-c', `cd "${folder}" && ${back}`]);
    assert.equal(again.code, 0, again.output);
    await daemon.synced(60_000);
    for (const index of FILES) assert.ok(await nas.has(`team/back${index}`), `back${index}`);
  });
});
