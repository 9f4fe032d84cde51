/** A daemon that runs as root, its admin, and a local user without rights. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { makeHash } from '../../../plugins/auth/password-hash.ts';
import { Daemon, NOBODY, runCli } from '../../support/daemon/daemon.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const PASSWORD = 'Geheim-77';
const skip = process.getuid?.() === 0 ? false : 'a daemon that is root needs root';
const authorization = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`;

interface Listed {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
}

interface Recorded {
  readonly event: string;
  readonly request?: string;
  readonly route?: string;
  readonly status?: number;
  readonly params?: unknown;
  readonly from?: unknown;
  readonly origin?: string;
  readonly changes?: readonly string[];
}

/** Lines of the record of changes, the oldest first. */
function recordedIn(text: string): Recorded[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);
}

/** Runs a script as `nobody` and returns what it says. */
async function asNobody(script: string): Promise<string> {
  const child = spawn('sh', ['-c', script], {
    ...NOBODY,
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      said += piece.toString();
    });
  await once(child, 'close');
  return said;
}

describe('the command socket of a daemon that asks for a password', { skip }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const socket = (): string => `${daemon.stateDir}/command.sock`;

  before(async () => {
    scratch = await createScratch('socket');
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1000 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { web: { password: await makeHash(PASSWORD) } },
    });
    // Somebody else may read the configuration and get as far as the state folder.
    await letOthersEnter(scratch.path('keeper'));
    await chmod(daemon.configFile, 0o644);
    daemon.spawn().catch(() => undefined);
    await until('it asks for a password', async () => (await daemon.get('/api/status')).status === 401, {
      timeoutMs: 30_000,
    });
  });
  after(() => scratch.close());

  it('lets every subcommand in without it', async () => {
    const synced = await daemon.cli('wait', '--synced', '--timeout', '40s');
    assert.equal(synced.code, 0, synced.stderr);
    for (const args of [
      ['status'],
      ['logs', '--lines', '3'],
      ['plugin', 'list'],
      ['bwlimit'],
      ['bwlimit', '0', '0'],
      ['refresh', 'work'],
      ['warmup', 'work', '/', '--dry-run'],
      ['webhook', 'log'],
      ['preset', 'office'],
      ['reconnect', 'work'],
    ]) {
      const { code, stdout, stderr } = await daemon.cli(...args);
      assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
    }
    assert.equal((await daemon.get('/api/status')).status, 401, 'over TCP it is asked for all the same');
    assert.equal((await daemon.request('GET', '/api/status', undefined, { authorization })).status, 200);
    const wrong = { authorization: 'Bearer wrong' };
    assert.equal((await daemon.request('GET', '/api/status', undefined, wrong)).status, 401);
  });

  it('is for root alone: a local user is told to give the password', async () => {
    assert.deepEqual(
      [(await stat(socket())).mode & 0o777, (await stat(daemon.stateDir)).mode & 0o777],
      [0o600, 0o700],
    );
    const env = { MOUNTKEEPER_CONFIG: daemon.configFile };
    const refused = await runCli(['status'], 60_000, env, NOBODY);
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(
      refused.stderr,
      new RegExp(
        '^mountkeeper: the daemon asks for a password; give it in the environment variable ' +
          'MOUNTKEEPER_PASSWORD, or run this as root or as the user the daemon runs as, who need none\\n$',
      ),
    );
    assert.equal(
      (await runCli(['status'], 60_000, { ...env, MOUNTKEEPER_PASSWORD: PASSWORD }, NOBODY)).code,
      0,
    );
    const url = `http://127.0.0.1:${daemon.port}`;
    assert.match(
      (await runCli(['status', '--url', url])).stderr,
      /asks for a password/,
      'an address that is given is what is asked',
    );
    const code =
      `require('node:net').connect(${JSON.stringify(socket())})` +
      ".on('connect', () => console.log('in')).on('error', (e) => console.log(e.code))";
    assert.equal(
      (await asNobody(`exec ${process.execPath} -e '${code.replaceAll("'", '"')}'`)).trim(),
      'EACCES',
    );
  });

  it('is replaced after a kill, removed on a hand-over or stop, and made anew by the next start', async () => {
    const works = async (): Promise<void> => {
      daemon.spawn().catch(() => undefined);
      await until('it asks for a password', async () => (await daemon.get('/api/status')).status === 401, {
        timeoutMs: 30_000,
      });
      const { code, stderr } = await daemon.cli('wait', '--synced', '--timeout', '40s');
      assert.equal(code, 0, stderr);
    };
    const pid = await daemon.rclonePid('work');
    await daemon.stop('SIGKILL');
    assert.equal(existsSync(socket()), true);
    assert.match((await daemon.cli('status')).stderr, /no daemon answers over a socket of its own in/);
    await works();
    assert.deepEqual(await daemon.stop('SIGUSR2'), { code: 0, signal: null });
    assert.equal(existsSync(socket()), false);
    assert.ok(await isMounted(daemon.mountPoint('work')));
    await works();
    assert.equal(await daemon.rclonePid('work'), pid, 'adopted both times');
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    assert.equal(existsSync(socket()), false);
  });

  it('is on record with what was done over it, as are those who were refused; for root alone', async () => {
    const { stdout, stderr } = await daemon.cli('audit', '--json');
    assert.equal(stderr, '');
    const lines = recordedIn(stdout);
    const reconnect = lines.find(({ route }) => route === '/api/reconnect/{share}');
    assert.deepEqual(
      [reconnect?.from, reconnect?.params, reconnect?.status],
      [{ users: [0] }, { share: 'work' }, 200],
    );
    const refused = lines.filter(({ event }) => event === 'refused');
    const [first] = refused;
    assert.deepEqual(
      [first?.route, first?.status, first?.from],
      ['/api/status', 401, { address: '127.0.0.1' }],
    );
    assert.equal((await stat(`${daemon.stateDir}/audit/audit.log`)).mode & 0o777, 0o600);
    const others = await runCli(['audit'], 60_000, { MOUNTKEEPER_CONFIG: daemon.configFile }, NOBODY);
    assert.deepEqual([others.code, others.stdout], [1, '']);
    assert.match(others.stderr, /is for root and the daemon's user alone/);
  });
});

describe('a daemon that runs as root', { skip }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const MARK = 'import { writeFileSync } from "node:fs"; import { getuid } from "node:process";';
  const code = (name: string, mark: string): string =>
    `${MARK} writeFileSync("${mark}", String(getuid())); ` +
    `export default { name: "${name}", version: "1.0.0", apiVersion: 1, ` +
    'description: "d", register() {} };';
  const lay = (folder: string, mark: string): string => {
    const name = folder.slice(folder.lastIndexOf('/') + 1);
    return (
      `mkdir -p ${folder} && cd ${folder} && printf '%s' ` +
      // For its mark.
      `'{"type":"module","version":"1.0.0","description":"d","mountkeeper":{"permissions":["files"]}}' ` +
      '> package.json && ' +
      `printf '%s' '${code(name, mark)}' > index.js`
    );
  };
  const listed = async (name: string): Promise<Listed | undefined> =>
    (JSON.parse((await daemon.cli('plugin', 'list', '--json')).stdout) as Listed[]).find(
      (one) => one.name === name,
    );

  before(async () => {
    scratch = await createScratch('rooted');
    await letOthersEnter(scratch.root);
    for (const [dir, mode] of [
      ['open', 0o777],
      ['sticky', 0o1777],
      ['marks', 0o777],
      ['own', 0o755],
    ] as const) {
      await mkdir(scratch.path(dir));
      await chmod(scratch.path(dir), mode);
    }
    const sections = { plugins: { dirs: ['open', 'sticky', 'own'].map((dir) => scratch.path(dir)) } };
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      sections,
    });
    await daemon.start();
  });
  after(() => scratch.close());

  it('says everywhere that any local user may change its configuration while it has no password', async () => {
    const sentence = new RegExp(
      'runs as root: every local user of this machine may change its configuration, ' +
        'over 127\\.0\\.0\\.1 port \\d+\\. Set web\\.password',
    );
    assert.match(
      await daemon.log(),
      /WARN.*every local user may change the configuration of this daemon, which runs as root without a password/i,
    );
    await until('a notice', async () => sentence.test((await daemon.get('/api/notices')).text), {
      timeoutMs: 20_000,
    });
    assert.match((await daemon.cli('status')).stdout, new RegExp(`^warning: .*${sentence.source}`, 'm'));
    assert.match((await daemon.cli('doctor')).stdout, /WARN\s+web password\s+every local user may change/);
    const answer = await daemon.submit(daemon.text({ sections: { web: { password: PASSWORD } } }));
    assert.equal(answer.status, 200, answer.text);
    await until('it is quiet', async () => !sentence.test((await daemon.cli('status')).stdout), {
      timeoutMs: 20_000,
    });
    assert.match((await daemon.cli('doctor')).stdout, /ok\s+web password\s+set/);
  });

  it('imports no plugin from a folder that everybody may write, switched on or not, and says why', async () => {
    assert.equal(await asNobody(lay(scratch.path('open/garden'), scratch.path('marks/open'))), '');
    assert.equal(await asNobody(lay(scratch.path('sticky/pond'), scratch.path('marks/sticky'))), '');
    const turnOn = (table: { readonly enabled: boolean; readonly isolation?: string }): Promise<void> =>
      daemon.writeConfig(
        daemon.text({
          sections: { web: { password: PASSWORD }, 'plugins.garden': table, 'plugins.pond': table },
        }),
      );
    await turnOn({ enabled: true });
    await until('they are refused', async () => (await listed('pond'))?.state === 'invalid', {
      timeoutMs: 20_000,
    });
    assert.match(
      (await listed('pond'))?.reason ?? '',
      /sticky\/pond belongs to user 65534, not to root, .*chown -R root/,
    );
    assert.match(
      (await listed(scratch.path('open')))?.reason ?? '',
      /open may be written by everybody, .*chmod go-w/,
    );
    assert.match((await daemon.cli('doctor')).stdout, /FAIL\s+plugin \S+open\s.*may be written by everybody/);
    for (const mark of ['open', 'sticky']) assert.equal(existsSync(scratch.path('marks', mark)), false);
    const answer = async (): Promise<number> =>
      (await daemon.request('GET', '/api/status', undefined, { authorization })).status;
    assert.equal(await answer(), 200, 'in a process of its own neither can have been a guard');
    assert.equal((await daemon.get('/api/status')).status, 401);
    await turnOn({ enabled: true, isolation: 'none' });
    await until('nobody is let in: either may have been a guard', async () => (await answer()) === 503, {
      timeoutMs: 20_000,
    });
    for (const mark of ['open', 'sticky']) assert.equal(existsSync(scratch.path('marks', mark)), false);
  });

  it('imports what root laid down only once the file has it on; over HTTP it cannot be switched on', async () => {
    const mark = scratch.path('marks/own');
    const laid = spawn('sh', ['-c', lay(scratch.path('own/shed'), mark)]);
    await once(laid, 'exit');
    await daemon.writeConfig(daemon.text());
    await until('it is found', async () => (await listed('shed'))?.state === 'disabled', {
      timeoutMs: 20_000,
    });
    const answer = await daemon.submit(daemon.text({ sections: { 'plugins.shed': { enabled: true } } }));
    assert.equal(answer.status, 400, answer.text);
    assert.match(
      answer.body.message,
      /^Validation error: .*"shed" does not come with Mountkeeper; it cannot be switched on over HTTP/,
    );
    assert.equal(existsSync(mark), false);
    await daemon.writeConfig(daemon.text({ sections: { 'plugins.shed': { enabled: true } } }));
    await until('it is up', async () => (await listed('shed'))?.state === 'active', { timeoutMs: 20_000 });
    assert.equal(existsSync(mark), true);
    await daemon.writeConfig(daemon.text());
    await until('it is off again', async () => (await listed('shed'))?.state === 'disabled', {
      timeoutMs: 20_000,
    });
  });

  it('has on record who changed the configuration, over HTTP and in the file, without its secrets', async () => {
    const all = async (): Promise<Recorded[]> =>
      recordedIn(await readFile(`${daemon.stateDir}/audit/audit.log`, 'utf8'));
    const applied = async (): Promise<Recorded[]> => (await all()).filter(({ event }) => event === 'config');
    const last = 'plugins.shed.enabled: true → false';
    await until('the last edit', async () => (await applied()).at(-1)?.changes?.includes(last), {
      timeoutMs: 20_000,
    });
    const [posted, ...edits] = await applied();
    assert.deepEqual(
      [posted?.origin, posted?.from, posted?.changes],
      ['http', { address: '127.0.0.1' }, ['web.password: set']],
    );
    const request = (await all()).find(
      ({ event, request: id }) => event === 'request' && id === posted?.request,
    );
    assert.equal(request?.route, '/api/config');
    assert.ok(edits.length > 0 && edits.every(({ origin, from }) => origin === 'file' && from === undefined));
    const text = (await daemon.cli('audit')).stdout;
    assert.match(text, /config 127\.0\.0\.1 .*\n    web\.password: set\n/);
    assert.ok(!text.includes(PASSWORD));
  });
});
