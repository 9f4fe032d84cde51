/** `mountkeeper support`: secrets are planted wherever one can stand, and none is in the archive. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFile, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Daemon, runCli } from '../../support/daemon/daemon.ts';
import { NAS_PASSWORD, Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const run = promisify(execFile);
const WEB = 'web-planted-3fK9';
const FROM_FILE = 'file-planted-q81Z';
const FROM_ENV = 'env-planted-77aB';
const CREDENTIAL = 'systemd-planted-04Lm';
const URL_TOKEN = 'url-planted-55Xy';
const PLANTED = [WEB, FROM_FILE, FROM_ENV, CREDENTIAL, URL_TOKEN, NAS_PASSWORD];
const inEachForm = (secret: string): readonly string[] => [
  secret,
  Buffer.from(secret).toString('base64').replace(/=+$/, ''),
  Buffer.from(secret).toString('hex'),
  encodeURIComponent(secret),
];

describe('the archive for support', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  /** What the daemon is given, and nobody else. */
  let given: Readonly<Record<string, string>>;

  before(async () => {
    scratch = await createScratch('support');
    const nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    await writeFile(scratch.path('nas-secret'), FROM_FILE, { mode: 0o600 });
    await mkdir(scratch.path('credentials'));
    await writeFile(scratch.path('credentials/nas'), CREDENTIAL, { mode: 0o600 });
    given = { PLANTED: FROM_ENV, CREDENTIALS_DIRECTORY: scratch.path('credentials') };
    daemon = await Daemon.create(scratch, {
      connections: [
        nas.connection('nas'),
        {
          name: 'spare',
          type: 'webdav',
          options: { url: 'https://nas.example', pass: { file: scratch.path('nas-secret') } },
        },
        {
          name: 'more',
          type: 'webdav',
          options: { url: 'https://nas.example', bearer_token: { env: 'PLANTED' } },
        },
        {
          name: 'third',
          type: 'webdav',
          options: { url: 'https://nas.example', pass: { credential: 'nas' } },
        },
      ],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
      sections: {
        web: { username: 'ada', password: WEB },
        notifications: { webhook_url: `https://hooks.example/${URL_TOKEN}` },
      },
      env: given,
    });
    daemon.spawn().catch(() => undefined);
  });
  after(() => scratch.close());

  async function gather(
    name: string,
    env = given,
  ): Promise<{ readonly folder: string; readonly files: readonly string[]; readonly text: string }> {
    const archive = scratch.path(`${name}.tar.gz`);
    const { code, stdout, stderr } = await runCli(
      ['support', archive, '--config', daemon.configFile],
      60_000,
      { ...env, NODE_OPTIONS: '' },
    );
    assert.equal(code, 0, stderr);
    assert.ok(stdout.startsWith(archive));
    assert.equal((await stat(archive)).mode & 0o777, 0o600);
    const folder = scratch.path(name);
    await mkdir(folder);
    await run('tar', ['-xzf', archive, '-C', folder]);
    const files = (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    files.forEach((file, index) => {
      if (file.endsWith('.json')) assert.doesNotThrow(() => JSON.parse(texts[index] ?? '') as unknown, file);
    });
    return {
      folder,
      files: files.map((file) => file.slice(folder.length).replace(/^\/[^/]+\//, '')),
      text: [...files, ...texts].join('\n'),
    };
  }

  function assertClean(text: string): void {
    for (const secret of PLANTED)
      for (const form of inEachForm(secret))
        assert.ok(
          !text.includes(form),
          `${form} in ${text.slice(Math.max(0, text.indexOf(form) - 200), text.indexOf(form) + 60)}`,
        );
  }

  it('takes no name that a file has', async () => {
    const file = scratch.path('there.toml');
    await writeFile(file, 'mine');
    const { code, stderr } = await runCli(['support', file, '--config', daemon.configFile], 60_000);
    assert.equal(code, 64);
    assert.match(stderr, /there\.toml is there already; give another name/);
    assert.equal(await readFile(file, 'utf8'), 'mine');
  });

  it('follows no link that others put there while it gathers', async () => {
    const [bin, target, victim] = [scratch.path('bin'), scratch.path('late.tar.gz'), scratch.path('victim')];
    await mkdir(bin);
    await writeFile(victim, 'theirs');
    // It is asked for its version.
    await writeFile(join(bin, 'fusermount3'), `#!/bin/sh\nln -s ${victim} ${target}\n`, { mode: 0o755 });
    const { code, stderr } = await runCli(['support', target, '--config', daemon.configFile], 60_000, {
      PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    });
    assert.equal(code, 64, stderr);
    assert.match(stderr, /late\.tar\.gz is there already/);
    assert.equal(await readFile(victim, 'utf8'), 'theirs');
  });

  it('holds what helps, and no secret in any form, while the daemon runs', async () => {
    const authorization = `Basic ${Buffer.from(`ada:${WEB}`).toString('base64')}`;
    await until(
      'the share is healthy',
      async () => {
        const { text } = await daemon.request('GET', '/api/status', undefined, { authorization });
        return text.includes('"health":"healthy"');
      },
      { timeoutMs: 60_000 },
    );
    const planted = PLANTED.flatMap(inEachForm)
      .map(
        (secret) =>
          `planted: ${secret} "${secret}" https://u:${secret}@x/ Authorization: ` +
          `Basic ${Buffer.from(`ada:${secret}`).toString('base64')}\n`,
      )
      .join('');
    await appendFile(daemon.logFile, planted);
    const logs = `${daemon.stateDir}/processes`;
    for (const name of (await readdir(logs)).filter((one) => one.endsWith('.log')))
      await appendFile(`${logs}/${name}`, planted);
    const { files, text } = await gather('running');
    for (const name of [
      'README.txt',
      'versions.txt',
      'doctor.txt',
      'configuration.json',
      'status.json',
      'notices.json',
      'logs/daemon.log',
    ])
      assert.ok(files.includes(name), name);
    assert.ok(
      files.some((name) => name.startsWith('logs/processes-mount_files')),
      files.join(),
    );
    assert.match(text, /"health":"healthy"/);
    assert.match(text, /mountkeeper is up/);
    assert.match(text, /planted: \*{8}/);
    assert.match(text, /rclone v1/);
    assertClean(text);
  });

  it('holds the configuration, and is about it, where only the daemon has its secrets', async () => {
    const { files, text } = await gather('root-shell', {});
    assert.ok(files.includes('configuration.json'));
    assert.match(text, new RegExp(`web port .*:${String(daemon.port)}`));
    for (const secret of [WEB, FROM_FILE, URL_TOKEN, NAS_PASSWORD]) assert.ok(!text.includes(secret), secret);
    assert.match(text, /credential nas cannot be read: [^;]*; the daemon may have it all the same/);
    const args = ['check', '--config', daemon.configFile];
    const { code, stdout } = await runCli(args, 60_000, { NODE_OPTIONS: '' });
    assert.equal(code, 0);
    assert.match(
      stdout,
      /warning: connections\[2\]\.options\.bearer_token: .*PLANTED is not set; the daemon/,
    );
  });

  it('is not written for what was not meant as its name', async () => {
    const base = ['support', '--config', daemon.configFile];
    for (const words of [
      ['-o', 'x'],
      ['--', '-o'],
      [scratch.path('a'), scratch.path('b')],
    ]) {
      const { code, stdout, stderr } = await runCli([...base, ...words]);
      assert.deepEqual([code, stdout], [64, ''], words.join(' '));
      assert.match(stderr, /mountkeeper support: it (has no option "-o"|writes one file)/);
    }
    assert.ok(!(await readdir('.')).includes('-o'));
    assert.ok(!(await readdir(scratch.root)).includes('a'));
  });

  it('is gathered without a daemon, and from a configuration that is not valid', async () => {
    await daemon.stop();
    const stopped = await gather('stopped');
    assert.match(stopped.text, /notAnswered/);
    assertClean(stopped.text);
    // The problems name these tables.
    const unknown = PLANTED.map((secret) => `[${secret}]\n`).join('');
    await appendFile(daemon.configFile, `\n${unknown}`);
    const broken = await gather('broken');
    assert.match(broken.text, /not valid, so it is left out/);
    assert.ok(!broken.files.includes('configuration.json'));
    for (const secret of PLANTED) assert.ok(!broken.text.includes(secret), secret);
  });
});
