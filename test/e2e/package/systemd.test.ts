// @load quiet
/**
 * What systemd hears of the real daemon, by its own protocol: a datagram socket of the test's, and
 * systemd-notify.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createClock } from '../../../core/platform/clock.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { processesNaming } from '../../support/platform/processes.ts';
import { until } from '../../support/platform/wait.ts';

const LISTENER =
  'use Socket; $| = 1; socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die; ' +
  'bind($s, sockaddr_un($ARGV[0])) or die; print "listening\\n"; ' +
  'while (defined recv($s, my $m, 4096, 0)) { ' +
  'print join(\' \', split(/\\n/, $m)), "\\n" }';

const DRAIN = /^STATUS=draining: [1-3] of [1-3] files wait, \d+ s left$/;

describe('systemd', () => {
  const clock = createClock();
  let scratch: Scratch;
  let daemon: Daemon;
  let socket: string;
  const heard: string[] = [];

  before(async () => {
    scratch = await createScratch('service');
    const nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    const slow = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 600_000 });
    socket = scratch.path('notify');
    const listener = spawn('perl', ['-e', LISTENER, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(listener, 'exit');
    scratch.defer(async () => {
      listener.kill('SIGKILL');
      await ended;
    });
    listener.stdout.on('data', (piece: Buffer) =>
      heard.push(
        ...piece
          .toString()
          .split('\n')
          .filter((line) => line !== ''),
      ),
    );
    await until('the listener listens', () => heard.includes('listening'), { timeoutMs: 10_000 });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', slow.port)],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
      env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '3000000' },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('is told that the daemon is up, its state, and is sent watchdog notices', async () => {
    assert.ok(
      heard.some((line) => line.startsWith('READY=1 STATUS=')),
      heard.join('\n'),
    );
    await until('words', () => heard.some((line) => line.startsWith('STATUS=1 of 1 shares healthy')), {
      timeoutMs: 20_000,
    });
    const before = heard.filter((line) => line === 'WATCHDOG=1').length;
    await until('it moves', () => heard.filter((line) => line === 'WATCHDOG=1').length >= before + 3, {
      timeoutMs: 20_000,
    });
  });

  it('hears of a reload, and of its end, of an invalid configuration, too', async () => {
    const reloaded = async (): Promise<readonly string[]> => {
      const from = heard.length;
      daemon.signal('SIGHUP');
      await until('it is ready again', () => heard.slice(from).includes('READY=1'), { timeoutMs: 20_000 });
      return heard.slice(from).filter((line) => !/^(STATUS|WATCHDOG|BARRIER)=/.test(line));
    };
    const now = (): bigint => process.hrtime.bigint() / 1000n;
    const before = now();
    const [reloading = '', ...rest] = await reloaded();
    const usec = BigInt(/^RELOADING=1 MONOTONIC_USEC=(\d+)$/.exec(reloading)?.[1] ?? -1);
    assert.ok(usec > before && usec < now(), `${reloading} after ${before}`);
    assert.deepEqual(rest, ['READY=1']);
    await daemon.writeConfig('[web\n');
    assert.match((await reloaded()).join('\n'), /^RELOADING=1 MONOTONIC_USEC=\d+\nREADY=1$/);
    await daemon.writeConfig(daemon.text());
    await reloaded();
  });

  it('hears nothing more of a daemon that stands still, until it goes on', async () => {
    const fed = (): number => heard.filter((line) => line === 'WATCHDOG=1').length;
    // A child, which ends when it was heard; before it runs the program it looks like the daemon.
    const isSpeaking = async (): Promise<boolean> => {
      const all = await processesNaming(socket);
      const own = all.find(({ pid }) => pid === daemon.pid)?.command;
      return all.some(
        ({ pid, command }) => pid !== daemon.pid && (command === own || command.startsWith('systemd-notify')),
      );
    };
    daemon.signal('SIGSTOP');
    await until(
      'it stands, and none of its messages is under way',
      async () => {
        const isStopped = /^\d+ \(.*\) T/s.test(await readFile(`/proc/${daemon.pid}/stat`, 'utf8'));
        return isStopped && !(await isSpeaking());
      },
      { timeoutMs: 10_000 },
    );
    await promisify(execFile)('systemd-notify', ['X_TEST=it stands'], {
      env: { ...process.env, NOTIFY_SOCKET: socket },
    });
    await until('all before that is heard', () => heard.includes('X_TEST=it stands'), { timeoutMs: 10_000 });
    const before = fed();
    // Fed every second otherwise.
    await clock.sleep(2_500);
    assert.equal(fed(), before);
    daemon.signal('SIGCONT');
    await until('it moves', () => fed() >= before + 2, { timeoutMs: 20_000 });
  });

  it('hears how far a drain is, and that it may need more time', async () => {
    for (const name of ['one', 'two', 'three'])
      await writeFile(`${daemon.mountPoint('files')}/${name}`, Buffer.alloc(3_000_000, name));
    const from = heard.length;
    daemon.signal('SIGTERM');
    await until('the drain in words', () => heard.slice(from).some((line) => DRAIN.test(line)), {
      timeoutMs: 30_000,
    });
    const fedBefore = heard.length;
    await until('it is fed', () => heard.slice(fedBefore).includes('WATCHDOG=1'), { timeoutMs: 30_000 });
    assert.equal((await daemon.exit(60_000)).code, 0);
    const said = heard.slice(from);
    const [stopping, more, words] = [
      said.findIndex((line) => line.startsWith('STOPPING=1 STATUS=draining')),
      said.indexOf('EXTEND_TIMEOUT_USEC=90000000'),
      said.findIndex((line) => DRAIN.test(line)),
    ];
    assert.ok(stopping >= 0 && stopping < more && more < words, said.join('\n'));
    assert.ok(!said.some((line) => line.startsWith('READY=1')), 'who stops is ready no more');
    await daemon.start();
    await daemon.healthy();
  });

  it('hears that the daemon stops and may need more time', async () => {
    assert.equal((await daemon.stop()).code, 0);
    const stopping = heard.findIndex((line) => line.startsWith('STOPPING=1'));
    assert.ok(stopping > 0);
    assert.ok(heard.slice(stopping).some((line) => line === 'EXTEND_TIMEOUT_USEC=90000000'));
  });

  it('knows every line of the unit, but for the type that systemd before 253 does not know', async () => {
    const unit = await readFile(`${PROJECT}config/mountkeeper.service`, 'utf8');
    // The program need not be installed where this runs.
    const file = scratch.path('mountkeeper.service');
    await writeFile(
      file,
      unit.replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true').replace(/^Documentation=.*$/m, ''),
    );
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file]);
    const said = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('mountkeeper.service'));
    assert.deepEqual(
      said.filter((line) => !/Failed to parse service type, ignoring: notify-reload/.test(line)),
      [],
    );
    assert.match(unit, /^Type=notify\nType=notify-reload$/m);
    assert.doesNotMatch(
      unit,
      /^ExecReload=/m,
      'systemd 253 and later would not wait for the end of a reload',
    );
  });

  it('finds a unit that gives up what a daemon with mounts for everybody can give up', async () => {
    const analyze = (args: readonly string[]) =>
      promisify(execFile)('systemd-analyze', [
        'security',
        '--offline=true',
        '--no-pager',
        ...args,
        `${PROJECT}config/mountkeeper.service`,
      ]);
    // A tenth of it is the process namespace in which a stranger's plugin can end no other process, and one is the
    // kernel's audit, to which PAM has to write.
    assert.match((await analyze(['--threshold=59'])).stdout, /Overall exposure level/);
    await assert.rejects(analyze(['--threshold=10']), 'the threshold is looked at');
  });
});
