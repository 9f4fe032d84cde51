// @load quiet
/**
 * What systemd hears of the real daemon, by its own protocol: a datagram socket of the test's, and
 * systemd-notify.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { PROJECT } from '../files.ts';
import { Daemon } from '../support/daemon.ts';
import { Nas } from '../support/nas.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

const LISTENER = `use Socket; $| = 1; socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die; bind($s, sockaddr_un($ARGV[0])) or die; print "listening\\n"; while (defined recv($s, my $m, 4096, 0)) { print join(' ', split(/\\n/, $m)), "\\n" }`;

describe('systemd', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const heard: string[] = [];

  before(async () => {
    scratch = await createScratch('service');
    const nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    const socket = scratch.path('notify');
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
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
      env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '3000000' },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('hears that the daemon is up, how it is, and again and again that it moves', async () => {
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

  it('hears that the daemon stops and may need more time', async () => {
    assert.equal((await daemon.stop()).code, 0);
    const stopping = heard.findIndex((line) => line.startsWith('STOPPING=1'));
    assert.ok(stopping > 0);
    assert.ok(heard.slice(stopping).some((line) => line === 'EXTEND_TIMEOUT_USEC=90000000'));
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
    assert.match((await analyze(['--threshold=60'])).stdout, /Overall exposure level/);
    await assert.rejects(analyze(['--threshold=10']), 'the threshold is looked at');
  });
});
