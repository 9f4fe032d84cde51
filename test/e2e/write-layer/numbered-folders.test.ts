// @load quiet
/**
 * A NAS that addresses folders by numbers: rclone remembers which path had which, and users give a folder's former name
 * to another one.
 */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { FileFabric } from '../../support/nas/file-fabric.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { unlessRoot } from '../../runner/skips.ts';

const SHARE = 'files';
const SYNCED_MS = 60_000;
const SHOWN = 'e:\nof g\n\ny:\nin\nof e\n\ny/in:\ndeep\n\nz:\nnew\nin gin e';

describe('a folder whose former name is given to another one', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: FileFabric;
  let daemon: Daemon;

  beforeEach(async () => {
    scratch = await createScratch('numbered-folders');
    nas = await FileFabric.start();
    scratch.defer(() => nas.close());
    nas.put('files/e/of e', 'in e');
    nas.put('files/e/in/deep', 'deep in e');
    nas.put('files/g/of g', 'in g');
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [{ name: 'nas', type: 'filefabric', options: nas.options }],
      shares: [{ name: SHARE, connection: 'nas', remote_path: SHARE }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  afterEach(() => scratch.close());

  const sh = async (script: string): Promise<string> => {
    const folder = daemon.mountPoint(SHARE);
    const { code, output } = await runClient('sh', ['-c', `cd "${folder}" && ${script}`], 30_000);
    assert.equal(code, 0, `${script}: ${output}`);
    return output;
  };

  it('is another one on the NAS as well, and shows what is in it', async () => {
    await sh('cat "e/of e" && mv e z && mv g e');
    await daemon.synced(SYNCED_MS);
    assert.deepEqual(nas.tree(), {
      files: '/',
      'files/e': '/',
      'files/e/of g': 'in g',
      'files/z': '/',
      'files/z/in': '/',
      'files/z/in/deep': 'deep in e',
      'files/z/of e': 'in e',
    });
    await sh('mv z y && mkdir z && printf new > z/new');
    await daemon.synced(SYNCED_MS);
    assert.deepEqual(nas.tree(), {
      files: '/',
      'files/e': '/',
      'files/e/of g': 'in g',
      'files/y': '/',
      'files/y/in': '/',
      'files/y/in/deep': 'deep in e',
      'files/y/of e': 'in e',
      'files/z': '/',
      'files/z/new': 'new',
    });
    assert.equal(await sh('ls e y y/in z && cat "e/of g" "y/of e"'), SHOWN);
  });
});
