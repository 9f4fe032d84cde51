/** `mountkeeper rclone` against a mirror on loopback, with a key of the test's own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Config, CliContext } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { runShortCommand } from '../../../../core/platform/processes/short-command.ts';
import { rcloneToRun } from '../../../../plugins/mount/releases/chosen.ts';
import { rcloneCommand } from '../../../../plugins/mount/releases/cli.ts';
import { buildName } from '../../../../plugins/mount/releases/install.ts';
import {
  ReleaseMirror,
  pretender,
  signedText,
  signingKey,
  version,
} from '../../../support/mount/release-mirror.ts';
import type { SigningKey } from '../../../support/mount/release-mirror.ts';
import { zipArchive } from '../../../support/mount/zip-archive.ts';
import { currentRclone } from '../../../support/nas/rclone-binaries.ts';
import { freePort } from '../../../support/platform/free-port.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const run = promisify(execFile);

describe('mountkeeper rclone', () => {
  let key: SigningKey;
  let scratch: Scratch;
  let mirror: ReleaseMirror;
  let stateDir: string;
  let mount: { rclone: string; rclone_mirror: string; rclone_proxy: string; rclone_renew_after: string };

  before(async () => {
    key = await signingKey();
  });
  beforeEach(async () => {
    scratch = await createScratch('releases');
    mirror = await ReleaseMirror.start(key);
    stateDir = scratch.path('state');
    await mkdir(stateDir, { mode: 0o700 });
    mount = { rclone: 'rclone', rclone_mirror: mirror.url, rclone_proxy: '', rclone_renew_after: '5m' };
  });
  afterEach(async () => {
    await mirror.close();
    await scratch.close();
  });

  interface Said {
    readonly code: number;
    readonly printed: string;
    readonly errors: string;
    readonly progress: readonly string[];
  }

  const command = async (args: readonly string[], options: { json?: boolean; signal?: AbortSignal } = {}) => {
    const printed: string[] = [];
    const errors: string[] = [];
    const progress: string[] = [];
    const cli: CliContext = {
      args,
      json: options.json ?? false,
      signal: options.signal ?? new AbortController().signal,
      isTerminal: false,
      clock: createClock(),
      print: (text) => void printed.push(text),
      printError: (text) => void errors.push(text),
      progress: (text) => void progress.push(text),
      table: (rows) => void printed.push(...rows.map((row) => row.join(' '))),
      config: () => Promise.resolve({ mount, supervisor: { state_dir: stateDir } } as unknown as Config),
      run: (spec) => runShortCommand(spec, createClock()),
      request: () => Promise.reject(new Error('no daemon here')),
      configFile: '/nowhere/mountkeeper.toml',
      hasDaemon: () => Promise.resolve(false),
      offline: (name) => Promise.reject(new Error(`no service ${String(name)} in this test`)),
    };
    const code = await rcloneCommand({ key: () => Promise.resolve(key), stallMs: 3_000 }).run(cli);
    return { code, printed: printed.join('\n'), errors: errors.join('\n'), progress } satisfies Said;
  };
  const inStore = (...parts: string[]): string => join(stateDir, 'rclone', ...parts);
  const runs = (): string => rcloneToRun(mount, stateDir);
  /** But the file that is locked while something is installed, which stays. */
  const kept = async (): Promise<string[]> =>
    (await readdir(inStore()).catch(() => [])).filter((name) => !name.endsWith('.lock')).sort();
  /** No attempt may leave anything, and what was chosen stays. */
  const assertNothing = async (): Promise<void> => {
    assert.deepEqual(await kept(), []);
    assert.equal(runs(), 'rclone');
  };

  it('installs the newest one, a real rclone, and has it run from then on', async () => {
    const real = currentRclone();
    const name = (await run(real, ['version'])).stdout.split('\n')[0]?.replace('rclone ', '') ?? '';
    assert.match(name, /^v\d+\.\d+\.\d+$/, 'a release, not a build of a distribution');
    await mirror.publish(name, await readFile(real));
    const said = await command(['install']);
    assert.equal(said.code, 0);
    assert.match(
      said.printed,
      /is chosen: .*takes it when it is mounted next.*older one once nobody has used the share for 5m/s,
    );
    assert.ok(said.progress.some((line) => /MiB of [\d.]+ MiB/.test(line)));
    assert.equal(runs(), inStore(name, 'rclone'));
    assert.match((await run(runs(), ['version'])).stdout, new RegExp(`^rclone ${name}\n`));
    const sum = async (file: string) =>
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex');
    assert.equal(await sum(runs()), await sum(real));
    assert.deepEqual(await kept(), ['chosen', name], 'no draft is left');
    assert.deepEqual(await readdir(inStore(name)), ['rclone'], 'nor the archive');
    assert.equal(lstatSync(runs()).mode & 0o777, 0o755);
    assert.equal(lstatSync(inStore()).mode & 0o777, 0o700);
  });

  it("installs a version by its name, lists, chooses, and goes back to the system's", async () => {
    await mirror.publish('v1.76.1');
    await mirror.publish('v1.77.0');
    assert.equal((await command(['install', '1.76.1'])).code, 0);
    assert.equal((await command(['install'])).code, 0);
    assert.match(
      (await command(['list'])).printed,
      /^ version program\n\* v1\.77\.0 .*\n v1\.76\.1 .*\n system \(/,
    );
    await command(['use', 'v1.76.1']);
    assert.equal(runs(), inStore('v1.76.1', 'rclone'));
    assert.match((await command(['list'])).printed, /\n v1\.77\.0 .*\n\* v1\.76\.1 /);
    const listed = JSON.parse((await command(['list'], { json: true })).printed) as {
      version: string;
      used: boolean;
    }[];
    assert.deepEqual(
      listed.map(({ used }) => used),
      [false, true, false],
    );
    await command(['use', 'system']);
    assert.equal(runs(), 'rclone');
    assert.match((await command(['list'])).printed, /\n\* system \(/);
    await assert.rejects(command(['use', '1.78.0']), /v1\.78\.0 is not installed here/);
    await assert.rejects(command(['use', 'latest']), /no version of rclone/);
  });

  it('says that a choice is of no use where the configuration names an rclone', async () => {
    await mirror.publish('v1.77.0');
    mount.rclone = '/opt/rclone';
    assert.match((await command(['install'])).printed, /It is not used: .*\/opt\/rclone, which goes first/);
    assert.equal(runs(), '/opt/rclone');
  });

  it('refuses an archive that is forged, cut off, or the one of another version', async () => {
    const build = buildName(version('v1.77.0'));
    const { archive } = await mirror.publish('v1.77.0');
    const path = `v1.77.0/${build}.zip`;
    mirror.put(path, zipArchive(`${build}/rclone`, Buffer.from('#!/bin/sh\ntouch /tmp/forged\n')));
    await assert.rejects(
      command(['install']),
      /not the one that rclone has signed: it is damaged, cut off or forged/,
    );
    await assertNothing();
    mirror.put(path, archive.subarray(0, archive.length / 2));
    await assert.rejects(command(['install']), /damaged, cut off or forged/);
    mirror.put(path, (_, response) => {
      response.setHeader('content-length', archive.length);
      response.write(archive.subarray(0, 100), () => response.destroy());
    });
    await assert.rejects(command(['install']), /cannot be fetched/);
    await assertNothing();
    // Signed, but what is in it says that it is an older one.
    await mirror.publish('v1.77.0', pretender('v1.71.0'));
    await assert.rejects(command(['install']), /holds another one, which says: rclone v1\.71\.0/);
    await assertNothing();
  });

  it('refuses checksums that are not signed, changed, or signed by another key', async () => {
    const { sums } = await mirror.publish('v1.77.0');
    const path = 'v1.77.0/SHA256SUMS';
    const text = `${'0'.repeat(64)}  ${buildName(version('v1.77.0'))}.zip\n`;
    for (const [content, reason] of [
      [text, /not signed/],
      [
        sums.replace(/^[0-9a-f]{64} {2}rclone-v1\.77\.0-linux/m, `${'0'.repeat(64)}  rclone-v1.77.0-linux`),
        /is wrong/,
      ],
      [await signedText(text, await signingKey()), /another key/],
      ['', /not signed/],
    ] as const) {
      mirror.put(path, content);
      await assert.rejects(command(['install']), reason);
    }
    await assertNothing();
    assert.ok(!mirror.asked.some((asked) => asked.endsWith('.zip')), 'the archive is not even fetched');
  });

  it('refuses an old release that is played as the newest, or under another name', async () => {
    const old = await mirror.publish('v1.71.0');
    await assert.rejects(
      command(['install']),
      /offers rclone v1\.71\.0 as the newest, and v1\.75\.2 is known here/,
    );
    await mirror.publish('v1.77.0');
    await command(['install']);
    await mirror.publish('v1.76.0');
    await assert.rejects(command(['install']), /v1\.77\.0 is known here/);
    assert.equal(runs(), inStore('v1.77.0', 'rclone'), 'the one in use stays');
    mirror.put('v1.78.0/SHA256SUMS', old.sums);
    mirror.put(`v1.78.0/${buildName(version('v1.78.0'))}.zip`, old.archive);
    await assert.rejects(command(['install', 'v1.78.0']), /they are of another release/);
    // On purpose it is installed, down to the oldest that is supported.
    assert.equal((await command(['install', 'v1.71.0'])).code, 0);
    await assert.rejects(command(['install', 'v1.69.3']), /needs v1\.70\.0 or later/);
  });

  it('waits for a slow mirror as long as something comes, and no longer', async () => {
    const { archive } = await mirror.publish('v1.77.0');
    const path = `v1.77.0/${buildName(version('v1.77.0'))}.zip`;
    mirror.put(path, (_, response) => {
      let at = 0;
      const timer = setInterval(() => {
        response.write(archive.subarray(at, (at += Math.ceil(archive.length / 10))));
        if (at < archive.length) return;
        clearInterval(timer);
        response.end();
      }, 400);
    });
    assert.equal((await command(['install'])).code, 0, '4 s, and never 3 s of silence');
    mirror.put(path, (_, response) => void response.write(archive.subarray(0, 10)));
    await assert.rejects(command(['install']), /nothing comes any more/);
    assert.deepEqual(await kept(), ['chosen', 'v1.77.0']);
  });

  it('can be interrupted, and the next one removes what a killed one left', async () => {
    const { archive } = await mirror.publish('v1.77.0');
    const path = `v1.77.0/${buildName(version('v1.77.0'))}.zip`;
    const interrupt = new AbortController();
    mirror.put(path, (_, response) => {
      response.write(archive.subarray(0, 10));
      interrupt.abort(new Error('interrupted'));
    });
    await assert.rejects(command(['install'], { signal: interrupt.signal }), /interrupted/);
    await assertNothing();
    await mkdir(inStore('.draft-abc'));
    await writeFile(inStore('.draft-abc', 'rclone'), 'half');
    mirror.put(path, archive);
    await command(['install']);
    assert.deepEqual(await kept(), ['chosen', 'v1.77.0']);
  });

  it('goes through a proxy, and gives up on one that stays silent', async () => {
    await mirror.publish('v1.77.0');
    mount = { ...mount, rclone_mirror: 'http://rclone.invalid', rclone_proxy: mirror.url };
    assert.equal((await command(['install'])).code, 0);
    assert.equal(mirror.asked[0], 'CONNECT rclone.invalid:80');
    mirror.isSilentProxy = true;
    await assert.rejects(command(['install']), /version\.txt cannot be fetched: nothing comes any more/);
  });

  it('says what is wrong with a mirror that is away or has no such version', async () => {
    await mirror.publish('v1.77.0');
    await assert.rejects(command(['install', 'v1.99.0']), /v1\.99\.0\/SHA256SUMS cannot be fetched: .* 404/);
    mount.rclone_mirror = `http://127.0.0.1:${await freePort()}`;
    await assert.rejects(command(['install']), /version\.txt cannot be fetched: .*ECONNREFUSED/);
    await assertNothing();
  });

  it('installs from files, without a network', async () => {
    const { archive, sums } = await mirror.publish('v1.77.0');
    const name = `${buildName(version('v1.77.0'))}.zip`;
    await writeFile(scratch.path(name), archive);
    await assert.rejects(command(['install', '--file', scratch.path(name)]), /put its SHA256SUMS into/);
    await writeFile(scratch.path('sums'), sums);
    assert.equal((await command(['install', '--file', scratch.path(name), scratch.path('sums')])).code, 0);
    assert.equal(runs(), inStore('v1.77.0', 'rclone'));
    assert.deepEqual(mirror.asked, []);
    await writeFile(scratch.path('SHA256SUMS'), sums);
    await writeFile(scratch.path(name), archive.subarray(0, -10));
    await assert.rejects(command(['install', '--file', scratch.path(name)]), /damaged, cut off or forged/);
    await writeFile(scratch.path('rclone.zip'), archive);
    await assert.rejects(command(['install', '--file', scratch.path('rclone.zip')]), /or was renamed/);
  });

  it('says that no space is left, and leaves nothing', { skip: unlessRoot }, async () => {
    await mirror.publish('v1.77.0', Buffer.concat([pretender('v1.77.0'), createNoise(3_000_000)]));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', stateDir]);
    try {
      await assert.rejects(command(['install']), /no space is left for .*\/rclone/);
      await assertNothing();
    } finally {
      await run('umount', [stateDir]);
    }
  });

  it('never runs what somebody else could change', async () => {
    await mirror.publish('v1.77.0');
    await command(['install']);
    await chmod(inStore('v1.77.0', 'rclone'), 0o777);
    assert.throws(runs, /could be changed by somebody else/);
    await command(['install']);
    assert.equal(runs(), inStore('v1.77.0', 'rclone'), 'installed anew, it is safe again');
    if (process.getuid?.() === 0) {
      await chown(inStore('v1.77.0', 'rclone'), 65_534, 65_534);
      assert.throws(runs, /could be changed by somebody else/);
    }
    await command(['install']);
    for (const folder of [stateDir, inStore(), inStore('v1.77.0')]) {
      await chmod(folder, 0o775);
      assert.throws(runs, new RegExp(`^Error: ${folder} could be changed by somebody else`), folder);
      await chmod(folder, 0o700);
    }
    const behind = scratch.path('link');
    await symlink(stateDir, behind);
    assert.equal(rcloneToRun(mount, behind), inStore('v1.77.0', 'rclone'), 'no link is on the way to it');
    await rm(inStore('v1.77.0'), { recursive: true });
    assert.throws(runs, /the rclone that was chosen is not there any more/);
  });

  it('chooses nothing that would not be run, and lists a choice that is not there any more', async () => {
    for (const name of ['v1.2.3', 'v1.2.4']) {
      await mkdir(inStore(name), { recursive: true });
      await writeFile(inStore(name, 'rclone'), '#!/bin/true\n', { mode: 0o755 });
    }
    await chmod(inStore('v1.2.4', 'rclone'), 0o777);
    await assert.rejects(command(['use', 'v1.2.4']), /v1\.2\.4\/rclone could be changed by somebody else/);
    assert.equal(runs(), 'rclone');
    assert.equal((await command(['use', 'v1.2.3'])).code, 0);
    assert.equal((await command(['list'])).errors, '');
    await rm(inStore('v1.2.3'), { recursive: true });
    const { printed, errors } = await command(['list']);
    assert.match(printed, /^\* v1\.2\.3 \S*\/v1\.2\.3\/rclone \(not there\)$/m);
    assert.match(errors, /^no share is mounted anew: the rclone that was chosen is not there any more/);
    const rows = JSON.parse((await command(['list'], { json: true })).printed) as object[];
    assert.deepEqual(
      rows.filter((row) => 'missing' in row),
      [{ version: 'v1.2.3', used: true, path: inStore('v1.2.3', 'rclone'), missing: true }],
    );
  });

  it('takes for a choice only a link to a version, and no choice only where there is no link', async () => {
    await mirror.publish('v1.77.0');
    await command(['install']);
    for (const target of [
      '../../elsewhere',
      '/opt',
      'v1.77.0/../v1.77.0',
      'v1.77',
      'v1.77.0\nv1.77.0',
      '.',
    ]) {
      await rm(inStore('chosen'));
      await symlink(target, inStore('chosen'));
      assert.throws(runs, /which is no version of rclone, so it is not run/, target);
    }
    await rm(inStore('chosen'));
    assert.equal(runs(), 'rclone');
    await writeFile(inStore('chosen'), 'v1.77.0');
    assert.throws(runs, /which rclone is chosen cannot be read: EINVAL/);
  });

  it('does not take a choice that this user may not see for none', { skip: unlessRoot }, async () => {
    await mirror.publish('v1.77.0');
    await command(['install']);
    process.seteuid?.(65_534);
    try {
      assert.throws(runs, /which rclone is chosen cannot be read: EACCES/);
    } finally {
      process.seteuid?.(0);
    }
  });

  it('is called wrongly with 64 and its usage', async () => {
    for (const args of [
      ['instal'],
      ['install', 'a', 'b'],
      ['install', '--file'],
      ['use'],
      ['list', 'x'],
      ['install', '--x'],
    ])
      assert.deepEqual([(await command(args)).code, args], [64, args]);
    assert.match((await command(['use'])).errors, /^usage: mountkeeper rclone install/);
  });
});

function createNoise(bytes: number): Buffer {
  const noise = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += 32) createHash('sha256').update(String(at)).digest().copy(noise, at);
  return noise;
}
