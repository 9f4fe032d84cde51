// @start 6
/** The command line as a person or a script uses it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { runs } from '../../support/config/applied-config.ts';
import { Daemon, MAIN, runCli } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('the command line', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;

  before(async () => {
    scratch = await createScratch('cli');
    nas = await Nas.create(scratch, { files: { 'x.bin': 1000 } });
    relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 4_000_000 });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const withConfig = async (text: string, ...args: string[]): ReturnType<typeof runCli> => {
    const file = scratch.path('candidate.toml');
    await writeFile(file, text);
    return runCli([...args, '--config', file]);
  };

  it('check says nothing bad about a good file and exits 0', async () => {
    const result = await withConfig(daemon.text(), 'check');
    assert.equal(result.code, 0, result.stderr);
  });

  for (const [what, text, where] of [
    ['a syntax error', '[web]\nport = \n', /candidate\.toml:2:\d+/],
    ['an unknown key with a suggestion', '[web]\nprot = 8090\n', /candidate\.toml:2:1\b.*port/s],
    ['a wrong value', '[supervisor]\n\npoll_interval = "soon"\n', /candidate\.toml:3:\d+.*poll_interval/s],
    [
      'a share of a connection that is not there',
      '[[connections]]\nname = "nas"\ntype = "sftp"\n\n[[shares]]\nname = "a"\nconnection = "nsa"\n',
      /candidate\.toml:7:\d+.*nsa/s,
    ],
  ] as const) {
    it(`check shows ${what} as FILE:line:column and exits 78`, async () => {
      const result = await withConfig(text, 'check');
      assert.equal(result.code, 78, result.stdout + result.stderr);
      assert.match(result.stdout + result.stderr, where);
      assert.doesNotMatch(result.stdout + result.stderr, /at .*\.js:\d/);
    });
  }

  it('run with a bad or missing file exits 78 with the reason and no stack trace', async () => {
    const bad = await withConfig('[web]\nport = "x"\n', 'run');
    assert.equal(bad.code, 78, bad.stderr);
    assert.match(bad.stderr + bad.stdout, /candidate\.toml:2:\d+/);
    const missing = await runCli(['run', '--config', scratch.path('nowhere.toml')]);
    assert.equal(missing.code, 78, missing.stderr);
    assert.match(missing.stderr, /nowhere\.toml/);
    for (const result of [bad, missing]) assert.doesNotMatch(result.stderr, /at .*\.js:\d/);
  });

  it('bench measures the line past mount and cache, and the cache disk', async () => {
    await mkdir(nas.path('bench'));
    await writeFile(nas.path('bench/film.bin'), Buffer.alloc(9_000_000, 'x'));
    const { code, stdout, stderr } = await daemon.cli('bench', 'work', '--json');
    await rm(nas.path('bench'), { recursive: true });
    assert.equal(code, 0, stderr);
    const found = JSON.parse(stdout) as {
      preset: string;
      line: { listingMs: number; files: number; bytesPerSecond: number };
      disk: { bytesPerSecond: number; smallMs: number };
    };
    assert.equal(found.preset, 'photographer');
    assert.equal(found.line.files, 2);
    assert.ok(found.line.listingMs > 1 && found.disk.bytesPerSecond > 1e6 && found.disk.smallMs > 0, stdout);
    // The line lets 4 MB/s through.
    assert.ok(found.line.bytesPerSecond > 5e5 && found.line.bytesPerSecond < 8e6, stdout);
    assert.equal((await daemon.share('work')).cache_bytes, 0, 'the cache has nothing of it');
    const unknown = await daemon.cli('bench', 'elsewhere');
    assert.match(unknown.stderr, /there is no share "elsewhere"; there are: work/);
  });

  it('makes no state folder for a file that is refused', async () => {
    const refused = await withConfig(
      `[supervisor]\nstate_dir = "${scratch.path('never')}"\n[web]\nport = "x"\n`,
      'run',
    );
    assert.equal(refused.code, 78, refused.stderr);
    assert.equal(existsSync(scratch.path('never')), false);
  });

  it('exits 64 with the usage when it is called wrongly', async () => {
    for (const args of [
      ['no-such-command'],
      ['reconnect'],
      ['bwlimit', '5M'],
      ['preset'],
      ['--config'],
      ['--confg', 'x', 'status'],
      ['check', 'some.toml'],
      ['run', '--debug'],
      ['help', 'nothing'],
      ['status', '--url', 'here'],
    ]) {
      const result = await runCli(args);
      assert.equal(result.code, 64, `${args.join(' ')}: ${result.stdout}${result.stderr}`);
      assert.doesNotMatch(result.stderr, /at .*\.js:\d/);
    }
  });

  it('suggests what may have been meant', async () => {
    assert.match((await runCli(['stauts'])).stderr, /there is no command 'stauts' .*did you mean "status"\?/);
    assert.match(
      (await runCli(['--confg', 'x', 'status'])).stderr,
      /there is no option '--confg' .*did you mean "--config"\?/,
    );
    assert.match((await runCli(['check', 'some.toml'])).stderr, /takes no arguments.*--config FILE/);
  });

  it('says how a subcommand is used, in 80 columns', async () => {
    for (const args of [['help', 'warmup'], ['warmup', '--help'], ['--help']]) {
      const { code, stdout } = await runCli(args);
      assert.equal(code, 0);
      assert.deepEqual(
        stdout.split('\n').filter((line) => line.length > 80),
        [],
      );
    }
    assert.match((await runCli(['help', 'warmup'])).stdout, /^Usage: mountkeeper warmup \[SHARE \[PATH\]\]/);
  });

  it('doctor looks at the machine before there is a configuration', async () => {
    const { code, stdout } = await runCli(['doctor', '--config', scratch.path('nowhere.toml')]);
    assert.equal(code, 1);
    assert.match(stdout, /FAIL\s+configuration\s.*there is no such file/);
    assert.match(stdout, /example\.toml is one to begin with/);
    assert.match(stdout, /\srclone\s/);
  });

  it('doctor changes nothing', async () => {
    const { stdout } = await withConfig(
      `connections = []\n[supervisor]\nstate_dir = "${scratch.path('not-yet')}"\n`,
      'doctor',
    );
    assert.match(stdout, /state folder\s.*will be made/);
    assert.equal(existsSync(scratch.path('not-yet')), false);
  });

  it('exits 1 and says so when no daemon answers', async () => {
    const result = await withConfig('[web]\nport = 1\n', 'status');
    assert.equal(result.code, 1, result.stdout + result.stderr);
    assert.match(result.stderr, /no daemon|running/i);
  });

  it('exits 1 and says so when something else answers', async () => {
    const other = createServer((_, answer) => answer.end('<html>')).listen(0, '127.0.0.1');
    try {
      await once(other, 'listening');
      const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      for (const args of [['status'], ['plugin', 'list'], ['reconnect', 'work']]) {
        const result = await runCli([...args, '--url', url]);
        assert.equal(result.code, 1, result.stdout);
        assert.match(
          result.stderr,
          /^mountkeeper: what answered is no mountkeeper daemon.*--url or --config\n$/,
        );
      }
    } finally {
      other.close();
    }
  });

  it('status is a table for people and JSON for machines', async () => {
    const table = await daemon.cli('status');
    assert.equal(table.code, 0, table.stderr);
    assert.match(table.stdout, /work\s+.*healthy/);
    assert.throws(() => JSON.parse(table.stdout) as unknown);
    const json = JSON.parse((await daemon.cli('status', '--json')).stdout) as { shares: { name: string }[] };
    assert.equal(json.shares[0]?.name, 'work');
  });

  it('wait --synced ends with 0 when all is on the NAS, and with 75 when time runs out first', async () => {
    const sum = await files.write(`${daemon.mountPoint('work')}/wait.bin`, 24_000_000, 60_000);
    const short = await daemon.cli('wait', '--synced', '--timeout', '1s');
    assert.equal(short.code, 75, short.stdout + short.stderr);
    const long = await daemon.cliFor(90_000, 'wait', '--synced', '--timeout', '60s');
    assert.equal(long.code, 0, long.stdout + long.stderr);
    assert.match(long.stdout, /^All synced\.$/m);
    // On a slow machine the file is up before it asks for the first time.
    assert.match(long.stderr, /^(1 file left \(work 1\)|nothing is left; making sure)/m, 'progress is shown');
    assert.equal(await nas.checksum('wait.bin'), sum);
  });

  it('wait --synced begun right after a write does not take a status from before the write for the truth', async () => {
    for (let index = 0; index < 3; index += 1) {
      const sum = await files.write(`${daemon.mountPoint('work')}/quick.bin`, 500_000);
      assert.equal((await daemon.cli('wait', '--synced', '--timeout', '40s')).code, 0);
      assert.equal(await nas.checksum('quick.bin'), sum, `round ${index}`);
    }
  });

  it('logs prints the last lines, and -f goes on with new ones until it is interrupted', async () => {
    const last = await daemon.cli('logs', '--lines', '3');
    assert.equal(last.code, 0, last.stderr);
    const lines = last.stdout.trimEnd().split('\n');
    assert.equal(lines.length, 3, last.stdout);
    const follow = spawn(process.execPath, [MAIN, 'logs', '-f', '--config', daemon.configFile], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let seen = '';
    follow.stdout.on('data', (piece: Buffer) => (seen += piece.toString()));
    try {
      await until('the first lines', () => seen.includes(lines.at(-1) ?? '-'), { timeoutMs: 20_000 });
      await appendFile(daemon.logFile, 'a line of the test 你好\n');
      await until('the new line', () => seen.includes('a line of the test 你好\n'), { timeoutMs: 20_000 });
      follow.kill('SIGINT');
      await until('its end', () => follow.exitCode !== null || follow.signalCode !== null, {
        timeoutMs: 20_000,
      });
    } finally {
      follow.kill('SIGKILL');
    }
    assert.deepEqual(
      [follow.exitCode, follow.signalCode],
      [0, null],
      'a log that is no longer followed is no failure',
    );
  });

  it('bwlimit, reconnect and preset do what they say, or say why not', async () => {
    const limit = await daemon.cli('bwlimit', '5M', '0');
    assert.equal(limit.code, 0, limit.stdout + limit.stderr);
    const unknown = await daemon.cli('reconnect', '没有');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stdout + unknown.stderr, /没有/);
    const preset = await daemon.cli('preset', 'nonsense');
    assert.equal(preset.code, 64, preset.stdout + preset.stderr);
    assert.match(preset.stderr, /photographer, video, office/);
    const office = await daemon.cli('preset', 'office');
    assert.equal(office.code, 0, office.stdout + office.stderr);
    assert.doesNotMatch(office.stdout, /<span/);
    // What looks at the daemon next would see it in the middle of the change.
    await runs(daemon, await readFile(daemon.configFile, 'utf8'));
  });

  it('plugin list names every plugin with its state', async () => {
    const { stdout, code } = await daemon.cli('plugin', 'list');
    assert.equal(code, 0);
    for (const name of ['mount', 'probing', 'control-api', 'logs', 'presets', 'auth'])
      assert.match(stdout, new RegExp(`^${name}\\s.*active`, 'm'));
    assert.match(stdout, /^example\s.*disabled/m);
  });

  it('doctor goes through the machine and exits 0 when there is no error', async () => {
    const result = await daemon.cli('doctor');
    assert.equal(result.code, 0, result.stdout + result.stderr);
    for (const topic of [/rclone/i, /fuse/i, /cache/i, /port/i]) assert.match(result.stdout, topic);
    const json = JSON.parse((await daemon.cli('doctor', '--json')).stdout) as unknown[];
    assert.ok(Array.isArray(json) && json.length >= 4);
  });

  it('help and version', async () => {
    const help = await runCli(['--help']);
    assert.equal(help.code, 0);
    for (const command of [
      'run',
      'check',
      'status',
      'wait',
      'reconnect',
      'bwlimit',
      'preset',
      'logs',
      'plugin',
      'doctor',
    ])
      assert.match(help.stdout, new RegExp(`\\b${command}\\b`));
    assert.doesNotMatch(help.stdout, /^ {2}example\b/m);
    const off = await runCli(['example']);
    assert.equal(off.code, 1);
    assert.match(off.stderr, /plugins\.example\.enabled = true/);
    assert.match((await runCli(['--version'])).stdout, /\d+\.\d+\.\d+/);
  });
});
