/** READMEs of plugins are shown: of plain files alone, and never of what a link leads to. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { FoundPlugin } from '../../../core/plugins/discovery/found.ts';
import { readmeOf } from '../../../core/plugins/readme.ts';

describe('the README of a plugin', () => {
  let room: string;
  before(async () => {
    room = await mkdtemp(path.join(tmpdir(), 'mountkeeper-readme-'));
    await writeFile(path.join(room, 'secret'), 'hush');
  });
  after(() => rm(room, { recursive: true }));

  const of = async (
    name: string,
    make: (file: string) => unknown,
    thirdParty = true,
  ): Promise<string | undefined> => {
    const folder = path.join(room, name);
    await mkdir(folder);
    await make(path.join(folder, 'README.md'));
    return readmeOf({ name, folder, thirdParty } as FoundPlugin);
  };

  it('is read as it stands, and ends where it is too long', async () => {
    assert.equal(await of('plain', (file) => writeFile(file, '# 花园\n<b>x</b>')), '# 花园\n<b>x</b>');
    assert.equal((await of('long', (file) => writeFile(file, 'x'.repeat(1_000_000))))?.length, 262_144);
  });

  it('of the package is found in the package', async () => {
    assert.match((await of('smb', () => undefined, false)) ?? '', /^# smb\n/);
  });

  it('is none where it is a link to something else, a folder or a pipe', async () => {
    const secret = path.join(room, 'secret');
    assert.equal(await of('linked', (file) => symlink(secret, file)), undefined);
    assert.equal(await of('hard', (file) => link(secret, file)), undefined);
    assert.equal(await of('folder', (file) => mkdir(file)), undefined);
    assert.equal(await of('pipe', (file) => execFileSync('mkfifo', [file])), undefined);
    assert.equal(await of('absent', () => undefined), undefined);
    assert.equal(await readmeOf(undefined), undefined);
  });
});
