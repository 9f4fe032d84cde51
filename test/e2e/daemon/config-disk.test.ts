/**
 * A disk that is full or read-only when the configuration is written: the old file stays whole, the old
 * settings run.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

function mountCommand(...args: string[]): void {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

/** What presets keep of hand-written files. */
const COPY = /\.bak(?:\.\d+)?$/;

describe('the disk of the configuration file', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let disk: string;
  let base: string;
  const texts: string[] = [];

  before(async () => {
    scratch = await createScratch('disk');
    const nas = await Nas.create(scratch, { files: { 'x.bin': 1000 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    base = daemon.text();
    // The file that is named is a link to one on a small disk of its own.
    disk = scratch.path('small-disk');
    await mkdir(disk);
    mountCommand('-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk);
    await writeFile(`${disk}/real.toml`, base, { mode: 0o640 });
    await chmod(`${disk}/real.toml`, 0o640);
    spawnSync('rm', [daemon.configFile]);
    await symlink(`${disk}/real.toml`, daemon.configFile);
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const running = async (): Promise<string> => (await daemon.get('/api/config')).text;
  const other = (up: string): string => `${base}\n[bandwidth]\nup = "${up}"\n`;

  it('writes through a symbolic link and keeps link and permissions', async () => {
    const answer = await daemon.submit(other('7M'));
    assert.deepEqual([answer.status, answer.body.message], [200, 'Config applied successfully']);
    assert.equal(await readFile(`${disk}/real.toml`, 'utf8'), other('7M'));
    assert.equal(await readFile(daemon.configFile, 'utf8'), other('7M'));
    assert.equal((await stat(`${disk}/real.toml`)).mode & 0o777, 0o640);
    await until('it runs', async () => (await running()).includes('"7M"'), { timeoutMs: 20_000 });
  });

  for (const [what, spoil, mend] of [
    [
      'full',
      async () =>
        void spawnSync('dd', ['if=/dev/zero', `of=${disk}/filler`, 'bs=1k', 'count=200'], {
          stdio: 'ignore',
        }),
      async () => void spawnSync('rm', [`${disk}/filler`]),
    ],
    [
      'read-only',
      async () => mountCommand('-o', 'remount,ro', disk),
      async () => mountCommand('-o', 'remount,rw', disk),
    ],
  ] as const) {
    it(`a ${what} disk: the API answers 500 with the reason, and the file stays as it was`, async () => {
      const before = { file: await readFile(daemon.configFile, 'utf8'), running: await running() };
      await spoil();
      const document = `${other('9M')}${'# filler\n'.repeat(2_000)}`;
      const answer = await daemon.submit(document);
      assert.equal(answer.status, 500, answer.text);
      assert.equal(answer.body.ok, false);
      assert.match(answer.body.message, /^Failed to write config file: ./);
      assert.ok((answer.body.diff_summary ?? '') !== '');
      const preset = await daemon.request('POST', '/api/preset/office');
      assert.equal(preset.status, 200);
      assert.match(preset.text, /<span class="error">/);
      await mend();
      assert.deepEqual({ file: await readFile(daemon.configFile, 'utf8'), running: await running() }, before);
      for (const folder of [disk, dirname(daemon.configFile)]) {
        assert.deepEqual(
          (await readdir(folder)).filter((name) => /tmp|temp|new|\.toml./.test(name) && !COPY.test(name)),
          [],
          folder,
        );
      }
      // What a preset keeps of the text it is about to replace is whole or not there.
      texts.push(before.file);
      const folder = dirname(daemon.configFile);
      for (const name of (await readdir(folder)).filter((one) => COPY.test(one)))
        assert.ok(texts.includes(await readFile(join(folder, name), 'utf8')), name);
      const later = await daemon.submit(other(what === 'full' ? '11M' : '12M'));
      assert.equal(later.status, 200, later.text);
    });
  }
});
