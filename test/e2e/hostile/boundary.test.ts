// @load loud
/**
 * The boundary: a daemon that runs as root without a password, and a local user without rights who knows
 * every door of it. What he tries is refused with a sentence, and the daemon goes on. What a page in a
 * browser can do stands in `boundary-page.test.ts`, what many connections do in `connections.test.ts`, ten
 * thousand random documents in `untrusted-documents.test.ts`.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { ConfigAnswer } from '../../support/daemon/daemon.ts';
import { flagged, notices } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { sleep, timed, within } from '../../support/platform/wait.ts';

/** The uid and gid that Debian calls nobody and nogroup. */
const NOBODY = 65_534;
const SECRET = 's3cret-Wort-0441';

interface Result {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a program as nobody, from a folder that he may enter. */
async function asNobody(command: string, args: readonly string[], input = ''): Promise<Result> {
  const child = spawn(command, args, {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
    stdio: 'pipe',
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: '/nonexistent' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  child.stdin.on('error', () => undefined).end(input);
  try {
    await within(`${command} as nobody`, 30_000, once(child, 'close'));
  } finally {
    child.kill('SIGKILL');
  }
  return { code: child.exitCode, output };
}

describe('the boundary, tried by a local user without rights', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let ports: { readonly smb: number; readonly nfs: number; readonly webdav: number };
  let stranger: string;

  before(async () => {
    scratch = await createScratch('boundary');
    // He may enter, and has a folder of his own, as he would below /tmp.
    await chmod(scratch.root, 0o755);
    stranger = scratch.path('stranger');
    await mkdir(stranger, { mode: 0o777 });
    await chown(stranger, NOBODY, NOBODY);
    nas = await Nas.create(scratch, { files: { 'private.txt': 700 } });
    ports = { smb: await freePort(), nfs: await freePort(), webdav: await freePort() };
    const users = [{ name: 'anna', password: SECRET }];
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: {
        smb: { enabled: true, port: ports.smb, users },
        nfs: { enabled: true, port: ports.nfs },
        webdav: { enabled: true, port: ports.webdav, users },
        plugins: { dirs: [stranger] },
        notifications: { webhook_url: `http://198.51.100.7/hook/${SECRET}` },
      },
    });
    await daemon.start();
    await daemon.healthy();
    await flagged(daemon, { smbd_running: true, webdav_running: true });
  });
  afterEach(async () => {
    assert.ok(daemon.alive, 'the daemon goes on');
    await daemon.healthy();
    assert.ok(!existsSync(trap()), 'a program was run');
  });
  after(() => scratch.close());

  const trap = (): string => scratch.path('trap-was-run');
  const url = (path: string): string => `http://127.0.0.1:${daemon.port}${path}`;
  const onDisk = (): Promise<string> => readFile(daemon.configFile, 'utf8');

  /** POSTs a document as nobody. */
  async function submit(toml: string): Promise<{ readonly status: number; readonly answer: ConfigAnswer }> {
    const args = [
      '-sS',
      '-w',
      '\n%{http_code}',
      '-H',
      'content-type: application/json',
      '--data-binary',
      '@-',
      url('/api/config'),
    ];
    const { output } = await asNobody('curl', args, JSON.stringify({ toml }));
    const at = output.lastIndexOf('\n');
    return { status: Number(output.slice(at + 1)), answer: JSON.parse(output.slice(0, at)) as ConfigAnswer };
  }

  /** The document is refused with a sentence that says where it may stand, and nothing has changed. */
  async function refused(toml: string, what: string): Promise<void> {
    const before = await onDisk();
    const { status, answer } = await submit(toml);
    assert.equal(status, 400, `${what}: ${answer.message}`);
    assert.match(answer.message, /^Validation error: .*file/s, what);
    assert.equal(await onDisk(), before, what);
  }

  const withConnection = (type: string, options: Record<string, string | boolean>): string =>
    daemon.text({
      connections: [nas.connection('nas'), { name: 'mine', type, options }],
      shares: [
        { name: 'files', connection: 'nas' },
        { name: 'mine', connection: 'mine' },
      ],
    });

  it('no program runs by an option of a connection', async () => {
    const credentials = join(stranger, 'credentials');
    await asNobody('tee', [credentials], `[default]\ncredential_process = touch ${trap()}\n`);
    const s3 = {
      provider: 'AWS',
      env_auth: true,
      shared_credentials_file: credentials,
      region: 'eu-central-1',
    };
    const login = { host: 'x', user: 'x', pass: 'x' };
    const documents = {
      's3 with a credentials file': withConnection('s3', s3),
      'sftp with a program for ssh': withConnection('sftp', { ...login, ssh: `touch ${trap()}` }),
      'webdav with a program for tokens': withConnection('webdav', {
        url: 'http://127.0.0.1:1',
        bearer_token_command: `touch ${trap()}`,
      }),
      'a remote in a connection string': withConnection('alias', {
        remote: `:sftp,ssh="touch ${trap()}",host=x:`,
      }),
      'another section in a value': withConnection('sftp', {
        ...login,
        host: `x\n[evil]\ntype = sftp\nssh = touch ${trap()}`,
      }),
    };
    for (const [what, toml] of Object.entries(documents)) await refused(toml, what);
    // No file may hold it either: rclone has no such option.
    const flag = await submit(
      withConnection('sftp', { ...login, 'global.password_command': `touch ${trap()}` }),
    );
    assert.match(flag.answer.message, /^Validation error: unknown key "global\.password_command"/);
  });

  it('nothing of this machine is shown or written by what the API points at', async () => {
    const sections = (more: Record<string, Record<string, string | string[] | boolean>>): string =>
      daemon.text({ sections: more });
    const mountedAt = (mountPoint: string): string =>
      daemon.text({ shares: [{ name: 'files', connection: 'nas', mount_point: mountPoint }] });
    const documents = {
      'the disk as a share': withConnection('local', {}),
      'a mount over the system': mountedAt('/etc'),
      'a mount outside by dots': mountedAt(`${daemon.mountRoot}/../../etc`),
      'mount.root': sections({ mount: { root: '/etc' } }),
      'mount.rclone': sections({ mount: { rclone: join(stranger, 'rclone') } }),
      'cache.dir': sections({ cache: { dir: stranger } }),
      'supervisor.state_dir': sections({ supervisor: { state_dir: stranger } }),
      'log.file': sections({ log: { file: '/etc/shadow' } }),
      'plugins.dirs': sections({ plugins: { dirs: [stranger, '/tmp'] } }),
      'plugins.install_from_page': sections({ plugins: { install_from_page: true } }),
      'a secret of another file': daemon.text({ sections: { web: { password: { file: '/etc/shadow' } } } }),
      'a secret of the environment': daemon.text({ sections: { web: { password: { env: 'PATH' } } } }),
    };
    for (const [what, toml] of Object.entries(documents)) await refused(toml, what);
  });

  it("the log that the API shows is the daemon's own, whatever the file in the configuration is called", async () => {
    const shadow = await readFile('/etc/shadow', 'utf8');
    const { output } = await asNobody('curl', ['-sS', url('/api/logs?lines=10000')]);
    assert.ok(output.includes('total_lines'));
    for (const line of shadow.split('\n').filter((one) => one.length > 20)) assert.ok(!output.includes(line));
  });

  it('an option of 80 kB is judged at once', async () => {
    for (const value of [
      'a'.repeat(80_000),
      'a='.repeat(40_000),
      ':'.repeat(80_000),
      'a.'.repeat(40_000),
      ' '.repeat(80_000),
    ]) {
      const ms = await timed(submit(withConnection('sftp', { host: value, user: 'x', pass: 'x' })));
      assert.ok(ms < 2_000, `${value.slice(0, 4)}: ${Math.round(ms)} ms`);
    }
  });

  it('no plugin of his is imported, whether it is only there or switched on', async () => {
    const folder = join(stranger, 'guest');
    await asNobody('mkdir', ['-p', folder]);
    await asNobody(
      'tee',
      [join(folder, 'package.json')],
      '{ "name": "guest", "version": "1.0.0", "type": "module", "main": "index.js" }',
    );
    const code = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(trap())}, 'ran');\n`;
    await asNobody('tee', [join(folder, 'index.js')], code);
    await refused(`${daemon.text()}\n[plugins.guest]\nenabled = true\n`, 'switched on over HTTP');
    const text = daemon.text({
      sections: { plugins: { dirs: [stranger] }, 'plugins.guest': { enabled: true } },
    });
    await daemon.writeConfig(text);
    await daemon.cli('plugin', 'list');
    // As long as it took before.
    await sleep(4_000);
    assert.ok(!existsSync(trap()), 'switched on in the file');
    const list = await daemon.cli('plugin', 'list');
    assert.match(list.stdout, /guest[^\n]*(belongs|owner|owned)/i, list.stdout);
    await daemon.writeConfig(daemon.text());
    await daemon.healthy();
  });

  it('no share opens to him over SMB, NFS or WebDAV', async () => {
    const smb = await asNobody('smbclient', [
      '//127.0.0.1/files',
      '-N',
      '-p',
      String(ports.smb),
      '-m',
      'SMB3',
      '-c',
      'ls',
    ]);
    assert.match(smb.output, /NT_STATUS_(ACCESS_DENIED|LOGON_FAILURE)/);
    const wrong = await asNobody('smbclient', [
      '//127.0.0.1/files',
      '-U',
      'anna%guess',
      '-p',
      String(ports.smb),
      '-m',
      'SMB3',
      '-c',
      'ls',
    ]);
    assert.match(wrong.output, /NT_STATUS_LOGON_FAILURE/);
    for (const version of [3, 4]) {
      const listed = await asNobody('nfs-ls', [
        `nfs://127.0.0.1/files?version=${version}&nfsport=${ports.nfs}`,
      ]);
      assert.notEqual(listed.code, 0, listed.output);
      assert.ok(!listed.output.includes('private.txt'), listed.output);
    }
    const dav = await asNobody('curl', [
      '-sS',
      '-w',
      '%{http_code}',
      `http://127.0.0.1:${ports.webdav}/files/private.txt`,
    ]);
    assert.match(dav.output, /401$/);
    const local = await asNobody('ls', [daemon.mountPoint('files')]);
    assert.notEqual(local.code, 0, local.output);
  });

  it('what lies below a share, or waits for the NAS, cannot be reached past it', async () => {
    await writeFile(join(daemon.mountPoint('files'), 'waits.txt'), SECRET, { mode: 0o644 });
    const table = await readFile('/proc/self/mounts', 'utf8');
    const mounted = table
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter((path) => [daemon.stateDir, daemon.mountRoot].some((folder) => path.startsWith(`${folder}/`)));
    const below = join(daemon.stateDir, 'mount/lower/files');
    for (const part of ['source/low', 'through', 'handles'])
      assert.ok(
        mounted.includes(join(below, part)),
        `${part} is mounted, or this test looks in the wrong place`,
      );
    const cached = join(daemon.cacheDir, 'files');
    const layer = ['layer', 'layer/upper', 'layer/work', 'layer/aside', 'layer/records'];
    const folders = [...mounted, below, cached, ...layer.map((part) => join(cached, part))];
    for (const folder of folders) {
      const { code, output } = await asNobody('ls', [folder]);
      assert.ok(code !== 0 && !/waits|private/.test(output), `${folder}: ${output}`);
    }
    // Not for the folders above them alone: each is closed by itself, should somebody open those.
    for (const folder of [below, ...layer.map((part) => join(cached, part))])
      assert.equal((await stat(folder)).mode & 0o077, 0, folder);
    const file = join(cached, 'layer/upper/waits.txt');
    assert.ok(existsSync(file));
    assert.notEqual((await asNobody('cat', [file])).code, 0);
  });

  it('no secret is shown to him', async () => {
    const paths = [
      '/api/config',
      '/api/status',
      '/api/notices',
      '/api/plugins',
      '/api/logs?lines=10000',
      '/api/webhooks/deliveries',
    ];
    for (const path of paths) {
      const { output } = await asNobody('curl', ['-sS', url(path)]);
      assert.ok(!output.includes(SECRET), path);
    }
    for (const file of [daemon.stateDir, daemon.cacheDir])
      assert.notEqual((await asNobody('ls', [file])).code, 0, file);
  });

  it('the daemon sends nothing to this machine on his behalf', async () => {
    const targets = [
      'http://127.0.0.1:1/x',
      'http://localhost/x',
      'http://169.254.169.254/latest',
      'http://[::ffff:7f00:1]/x',
      'http://2130706433/x',
      'http://[64:ff9b::a9fe:a9fe]/x',
    ];
    for (const target of targets) {
      const { status, answer } = await submit(
        daemon.text({ sections: { notifications: { webhook_url: target } } }),
      );
      assert.equal(status, 400, `${target}: ${answer.message}`);
      assert.match(answer.message, /allow_private/, target);
    }
  });

  it('the command socket refuses him, and the daemon warns that the HTTP address does not', async () => {
    const status = await asNobody(process.execPath, [
      '-e',
      `
      const { connect } = require('node:net');
      connect(${JSON.stringify(join(daemon.stateDir, 'command.sock'))})
        .on('connect', () => console.log('in'))
        .on('error', (e) => console.log(e.code));
    `,
    ]);
    assert.match(status.output, /EACCES/);
    assert.match(await notices(daemon), /every local user of this machine may change its configuration/);
    assert.match((await daemon.cli('status')).stdout, /every local user/);
    assert.match((await daemon.cli('doctor')).stdout, /every local user/);
  });

  it("with a password he gets in nowhere, and the administrator's command line needs none", async () => {
    await daemon.writeConfig(daemon.text({ sections: { web: { password: SECRET } } }));
    for (let code = ''; code !== '401';) {
      code = (await asNobody('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', url('/api/status')]))
        .output;
      await sleep(100);
    }
    for (const path of ['/api/status', '/api/config', '/api/logs', '/api/plugins', '/api/notices', '/']) {
      const { output } = await asNobody('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', url(path)]);
      assert.equal(output, '401', path);
    }
    const { output } = await asNobody('curl', [
      '-sS',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      '-X',
      'POST',
      url('/api/reconnect/files'),
    ]);
    assert.equal(output, '401');
    assert.equal((await daemon.cli('status')).code, 0);
    await writeFile(daemon.configFile, daemon.text());
  });
});
