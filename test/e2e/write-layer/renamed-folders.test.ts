// @load quiet
/**
 * Folders and files of the NAS that users rename side by side. While the NAS has one at its new place and the share
 * still looks for it at the former one, a folder would show empty: `rmdir` would take it for deleted, with all that is
 * in it. A file whose data are not here would be missing.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const FOLDERS = Array.from({ length: 8 }, (_, index) => index);
const FILES = ['a.txt', 'sub/b.txt', 'sub/c.txt', 'sub/deep/d.txt'];

/** Tries to remove each folder of the place for as long as others rename there. Prints what it could remove. */
const TRIES = `
const { readdirSync, rmdirSync } = require('node:fs');
const end = Date.now() + Number(process.argv[2]) * 1000;
const turn = () => {
  // A name that leaves may answer ESTALE.
  let names = [];
  try { names = readdirSync(process.argv[1]); } catch {}
  for (const name of names) {
    try { rmdirSync(process.argv[1] + '/' + name); console.log('removed ' + name); } catch {}
  }
  if (Date.now() < end) setTimeout(turn, 5);
};
turn();`;

/** Renames each folder of the place and works in it for three seconds. Prints how often it was refused, for each. */
const WORKS = `
const { readdirSync, renameSync, writeFileSync } = require('node:fs');
const [folder, ...names] = process.argv.slice(1);
const refusals = [];
const begin = () => {
  const name = names.shift();
  if (name === undefined) return console.log(JSON.stringify(refusals));
  const [from, to] = [folder + '/' + name, folder + '/new-' + name];
  readdirSync(from + '/sub');
  renameSync(from, to);
  const end = Date.now() + 3_000;
  let [turns, refused] = [0, 0];
  const turn = () => {
    turns += 1;
    try {
      if (turns % 10 === 0) writeFileSync(to + '/' + turns, 'new');
      else readdirSync(to + '/sub');
    } catch { refused += 1; }
    if (Date.now() < end) return setTimeout(turn, 10);
    refusals.push(refused);
    begin();
  };
  turn();
};
begin();`;

/** At the top of the share: further down, a call waits for the folder above, which stays where it is. */
const TOP = Array.from({ length: 5 }, (_, index) => `top${index}`);
/** One call waits while the NAS moves the folder, and what it waited for is gone then; few come meanwhile. */
const FEW_REFUSALS = 8;

/** Of one program, which has one call under way: it may be the one that waits, each time a listing is read anew. */
const NAMES = Array.from({ length: 20 }, (_, index) => index);
const FEW_MISSES = 6;

/** Renames all files of the folder, and asks for each of them for six seconds. Prints what was missing, and why. */
const ASKS = `
const { readdirSync, renameSync, statSync } = require('node:fs');
process.chdir(process.argv[1]);
const names = readdirSync('.');
for (const name of names) renameSync(name, 'new' + name);
const end = Date.now() + 6_000;
const missing = {};
const turn = () => {
  for (const name of names) {
    try { statSync('new' + name); } catch ({ code }) { (missing['new' + name] ??= new Set()).add(code); }
  }
  if (Date.now() < end) return setTimeout(turn, 5);
  for (const name in missing) console.log(name, ...missing[name]);
};
turn();`;

describe('folders that are renamed while somebody removes empty ones', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  before(async () => {
    scratch = await createScratch('renamed-folders');
    const names = ['plain', 'case'].flatMap((place) =>
      FOLDERS.flatMap((index) => FILES.map((file) => [`team/${place}/old${index}/${file}`, 2_000] as const)),
    );
    const atTop = TOP.map((name) => [`team/${name}/sub/b.txt`, 2_000] as const);
    const files = NAMES.map((index) => [`team/files/${index}`, 2_000] as const);
    nas = await Nas.create(scratch, { files: Object.fromEntries([...names, ...atTop, ...files]) });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: { mount: { write_back: '1s' } },
    });
    await daemon.start();
    await daemon.healthy(['team']);
  });
  after(() => scratch.close());

  const renamed = async (place: string, to: string): Promise<void> => {
    const folder = `${daemon.mountPoint('team')}/${place}`;
    const renames = FOLDERS.map((index) => `mv "old${index}" "${to}${index}" && sleep 0.25`).join(' && ');
    const [moving, removing] = await Promise.all([
      runClient('sh', ['-c', `cd "${folder}" && ${renames}`]),
      runClient(process.execPath, ['-e', TRIES, folder, '8']),
    ]);
    assert.equal(moving.code, 0, moving.output);
    assert.equal(removing.output, '');
    await daemon.synced(60_000);
    const left = await Promise.all(
      FOLDERS.flatMap((index) =>
        FILES.map(async (file) =>
          (await nas.has(`team/${place}/${to}${index}/${file}`)) ? [] : [`${to}${index}/${file}`],
        ),
      ),
    );
    assert.deepEqual(left.flat(), [], 'what the NAS has lost');
  };

  it('stay, each with all that is in it', () => renamed('plain', 'new'));

  it('stay when their names change in case alone, which takes two moves', () => renamed('case', 'OLD'));

  it('can be worked in all the time, but for the calls that waited for the NAS', async () => {
    const { code, output } = await runClient(process.execPath, [
      '-e',
      WORKS,
      daemon.mountPoint('team'),
      ...TOP,
    ]);
    assert.equal(code, 0, output);
    const refusals = JSON.parse(output) as number[];
    assert.equal(refusals.length, TOP.length);
    // On a busy machine one may be slow to show.
    assert.ok(refusals.filter((count) => count > FEW_REFUSALS).length <= 1, output);
    await daemon.synced(60_000);
    for (const name of TOP) assert.ok(await nas.has(`team/new-${name}/sub/b.txt`), name);
  });

  it('leave files alone that are renamed, too: they are there all the time, but for calls that waited', async () => {
    const folder = `${daemon.mountPoint('team')}/files`;
    const { code, output } = await runClient(process.execPath, ['-e', ASKS, folder]);
    assert.equal(code, 0, output);
    assert.ok(output.split('\n').filter((line) => line !== '').length <= FEW_MISSES, output);
    await daemon.synced(60_000);
    const back = NAMES.map((index) => `mv new${index} back${index}`).join(' && ');
    const again = await runClient('sh', ['-c', `cd "${folder}" && ${back}`]);
    assert.equal(again.code, 0, again.output);
    await daemon.synced(60_000);
    for (const index of NAMES) assert.ok(await nas.has(`team/files/back${index}`), `back${index}`);
  });
});
