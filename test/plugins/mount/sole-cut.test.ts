import assert from 'node:assert/strict';
import { mkdtemp, open, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ShortCommand } from 'mountkeeper';
import { createClock } from '../../../core/system/clock.ts';
import { runShortCommand } from '../../../core/system/short-command.ts';
import { cutAlone } from '../../../plugins/mount/sole-cut.ts';
import type { SoleCut } from '../../../plugins/mount/sole-cut.ts';

const clock = createClock();
const processes = { run: (command: ShortCommand) => runShortCommand(command, clock) };

describe('a file that is made shorter only if nobody else has it open', () => {
  let folder: string;
  let file: string;
  let asFound: SoleCut;
  const bytesOf = async (): Promise<number> => (await stat(file)).size;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-sole-'));
    file = join(folder, 'bäd \' name\n');
    await writeFile(file, Buffer.alloc(3_000, 1));
    await writeFile(join(folder, 'record'), '{\n\t"ModTime": "now",\n\t"Size": 1000,\n\t"Dirty": true\n}\n');
    asFound = { bytes: 1_000, foundBytes: 3_000, record: join(folder, 'record'), has: ['\n\t"Size": 1000,\n', '"ModTime": "now"'], inCache: { file, modified: '1795237200.123456789' } };
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('is, and keeps its time', async () => {
    assert.equal(await cutAlone('/not asked for', asFound, { processes: processes as never }), 'cut');
    assert.equal(await bytesOf(), 1_000);
    assert.equal(Math.floor((await stat(file)).mtimeMs / 1_000), 1_795_237_200);
  });

  it('is by its mounted name, too, and is as new as the cut then', async () => {
    assert.equal(await cutAlone(file, { ...asFound, inCache: undefined }, { processes: processes as never }), 'cut');
    assert.equal(await bytesOf(), 1_000);
  });

  it('stays as it is while somebody has it open, be it for reading', async () => {
    const reader = await open(file, 'r');
    try {
      assert.equal(await cutAlone('', asFound, { processes: processes as never }), 'open elsewhere');
    } finally {
      await reader.close();
    }
    assert.equal(await bytesOf(), 3_000);
  });

  it('stays as it is when it, or its record, is not as it was found', async () => {
    const longer = { ...asFound, foundBytes: 2_999 };
    const opened = { ...asFound, has: ['\n\t"Size": 3000,\n'] };
    const unrecorded = { ...asFound, record: join(folder, 'none') };
    for (const cut of [longer, opened, unrecorded]) assert.equal(await cutAlone('', cut, { processes: processes as never }), 'changed');
    assert.equal(await bytesOf(), 3_000);
    await assert.rejects(cutAlone('', { ...asFound, inCache: { file: join(folder, 'gone'), modified: '1' } }, { processes: processes as never }), /could not be made shorter: open: No such file/);
  });
});
