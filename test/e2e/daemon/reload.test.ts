/**
 * Changes of the configuration touch what they must and nothing else: rclone processes and open readers are
 * the witnesses.
 */
import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { BandwidthState } from 'mountkeeper';
import { applied, runs } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { DaemonTraits } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import type { LongTask, Tally } from '../../support/platform/file-worker.ts';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

describe('a change of the configuration', () => {
  let scratch: Scratch;
  let nas: Nas;
  let slow: Relay;
  let daemon: Daemon;
  let files: Files;
  let base: Pick<DaemonTraits, 'shares' | 'connections'>;

  before(async () => {
    scratch = await createScratch('reload');
    nas = await Nas.create(scratch, {
      files: { 'a/x.bin': 1_000_000, 'b/x.bin': 1_000_000, 'c/x.bin': 5_000 },
    });
    slow = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 2_000_000 });
    files = new Files(scratch);
    base = {
      connections: [nas.connection('nas'), nas.connection('slow', slow.port)],
      shares: [
        { name: 'one', connection: 'nas', remote_path: 'a' },
        { name: 'two', connection: 'slow', remote_path: 'b' },
      ],
    };
    daemon = await Daemon.create(scratch, base);
    await daemon.start();
    await daemon.healthy(['one', 'two']);
  });
  after(() => scratch.close());

  beforeEach(async () => {
    await applied(daemon, daemon.text());
  });

  const pids = async (): Promise<readonly number[]> => [
    await daemon.rclonePid('one'),
    await daemon.rclonePid('two'),
  ];
  const reader = (share: string): LongTask<Tally> =>
    files.begin<Tally>({ op: 'hold-open', path: `${daemon.mountPoint(share)}/x.bin` });
  const apply = async (changes: Partial<DaemonTraits>): Promise<string> => {
    const answer = await daemon.submit(daemon.text(changes));
    assert.deepEqual([answer.status, answer.body.message], [200, 'Config applied successfully'], answer.text);
    return answer.body.diff_summary ?? '';
  };

  it('of the live tier touches no mount and works at once', async () => {
    const before = await pids();
    const held = [reader('one'), reader('two')];
    const summary = await apply({
      sections: { bandwidth: { up: '5M', down: '6M' }, supervisor: { poll_interval: '500ms' } },
    });
    assert.match(summary, /bandwidth\.up/);
    await until(
      'it holds',
      async () => (await daemon.get<BandwidthState>('/api/bwlimit')).body.limit.up === 5 * 1_048_576,
      { timeoutMs: 20_000 },
    );
    await sleep(1_500);
    assert.deepEqual(await pids(), before);
    for (const one of held) assert.deepEqual((await one.stop()).failures, []);
  });

  it('of the port: the new address is listened on before the old one is let go', async () => {
    const before = await pids();
    const port = await freePort();
    await apply({ sections: { web: { port } } });
    await until(
      'the new port answers',
      async () => (await fetch(`http://127.0.0.1:${port}/api/status`)).status === 200,
      { timeoutMs: 20_000 },
    );
    await until(
      'the old port is let go',
      async () =>
        daemon.get('/api/status').then(
          () => false,
          () => true,
        ),
      { timeoutMs: 20_000 },
    );
    const back = await fetch(`http://127.0.0.1:${port}/api/config`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ toml: daemon.text() }),
    });
    assert.equal(back.status, 200);
    await until('the old port answers again', async () => (await daemon.get('/api/status')).status === 200, {
      timeoutMs: 20_000,
    });
    assert.deepEqual(await pids(), before);
  });

  it('of one share touches that share alone', async () => {
    const before = await pids();
    const held = reader('one');
    await apply({ shares: [base.shares[0] ?? {}, { ...base.shares[1], remote_path: 'c' }] });
    const sum = await nas.checksum('c/x.bin');
    await until(
      'the share shows its new folder',
      async () => (await files.checksum(`${daemon.mountPoint('two')}/x.bin`, 5_000)) === sum,
      { timeoutMs: 30_000, everyMs: 200 },
    );
    const now = await pids();
    assert.equal(now[0], before[0]);
    assert.notEqual(now[1], before[1]);
    assert.deepEqual((await held.stop()).failures, []);
  });

  it('that adds and takes away a share leaves the others alone', async () => {
    const before = await pids();
    const held = [reader('one'), reader('two')];
    await apply({ shares: [...base.shares, { name: '第三', connection: 'nas', remote_path: 'c' }] });
    await daemon.healthy(['第三']);
    assert.equal(await files.checksum(`${daemon.mountPoint('第三')}/x.bin`), await nas.checksum('c/x.bin'));
    await apply({});
    await until(
      'it is gone',
      async () =>
        (await daemon.status()).shares.length === 2 && !(await isMounted(daemon.mountPoint('第三'))),
      { timeoutMs: 20_000 },
    );
    assert.deepEqual(await pids(), before);
    for (const one of held) assert.deepEqual((await one.stop()).failures, []);
  });

  it('of the global tier mounts anew what it must', async () => {
    const before = await pids();
    await applied(daemon, daemon.text({ sections: { mount: { read_ahead: '3M' } } }));
    const now = await pids();
    assert.ok(now[0] !== before[0] && now[1] !== before[1], `${before.join(' ')} → ${now.join(' ')}`);
  });

  it('of the path waits until the files of the share are on the NAS', async () => {
    const sum = await files.write(`${daemon.mountPoint('two')}/big.bin`, 16_000_000, 60_000);
    await apply({ shares: [base.shares[0] ?? {}, { ...base.shares[1], remote_path: 'c' }] });
    assert.equal(
      (await nas.has('b/big.bin')) && (await nas.checksum('b/big.bin')) === sum,
      false,
      'the file was up before the change: the test shows nothing',
    );
    const onC = await nas.checksum('c/x.bin');
    await until(
      'the share shows its new folder',
      async () => (await files.checksum(`${daemon.mountPoint('two')}/x.bin`, 5_000)) === onC,
      { timeoutMs: 60_000, everyMs: 200 },
    );
    assert.equal(await nas.checksum('b/big.bin'), sum);
    assert.equal(await nas.has('c/big.bin'), false);
  });

  it('on disk is taken by itself, and a bad one is not', async () => {
    const before = await pids();
    await writeFile(`${daemon.configFile}~`, daemon.text({ sections: { bandwidth: { up: '21M' } } }));
    await rename(`${daemon.configFile}~`, daemon.configFile);
    const up = async (): Promise<string> =>
      (await daemon.get<{ bandwidth: { up: string } }>('/api/config')).body.bandwidth.up;
    await until('it runs', async () => (await up()) === '21M', { timeoutMs: 20_000 });
    const told = (await daemon.log()).length;
    await daemon.writeConfig('[[connections\nbroken');
    await until(
      'the log says what is wrong and where',
      async () => /configuration file refused.*toml:1:\d+/.test((await daemon.log()).slice(told)),
      { timeoutMs: 20_000 },
    );
    assert.equal(await up(), '21M');
    assert.equal((await daemon.share('one')).health, 'healthy');
    await daemon.writeConfig(daemon.text());
    await until('the good one runs', async () => (await up()) === '0', { timeoutMs: 20_000 });
    assert.deepEqual(await pids(), before);
  });

  it('is read again on SIGHUP', async () => {
    await rename(daemon.configFile, `${daemon.configFile}.away`);
    await writeFile(daemon.configFile, daemon.text({ sections: { bandwidth: { down: '33M' } } }));
    daemon.signal('SIGHUP');
    await until(
      'it runs',
      async () =>
        (await daemon.get<{ bandwidth: { down: string } }>('/api/config')).body.bandwidth.down === '33M',
      { timeoutMs: 20_000 },
    );
    assert.ok(daemon.alive);
  });

  it('by a preset writes commented TOML that is the same the second time, and keeps what others wrote', async () => {
    const secret = scratch.path('secret');
    await writeFile(secret, 'n4s-pass-Wort-7781');
    const connections = base.connections.map((one) => ({
      ...one,
      options: { ...one.options, pass: { file: secret } },
    }));
    // A reference comes in by the file alone.
    const text = daemon.text({ connections, sections: { 'plugins.someone-else': { token: 'keep me' } } });
    await daemon.writeConfig(text);
    await runs(daemon, text);
    const answer = await daemon.request('POST', '/api/preset/office');
    assert.equal(answer.status, 200);
    assert.match(answer.text, /<span class="ok">.*office.*<\/span>/s);
    const first = await readFile(daemon.configFile, 'utf8');
    assert.match(first, /buffer_size = "128M"/);
    assert.match(first, /write_back = "5s"/);
    assert.match(first, /token = "keep me"/);
    assert.ok(
      first.includes(secret) && !first.includes('n4s-pass-Wort-7781'),
      'a reference stays a reference',
    );
    assert.match(first, /^# /m);
    await sleep(500);
    await daemon.request('POST', '/api/preset/office');
    assert.equal(await readFile(daemon.configFile, 'utf8'), first);
    const unknown = await daemon.request('POST', '/api/preset/nonsense');
    assert.equal(unknown.status, 400);
    assert.match(unknown.text, /nonsense/);
    await runs(daemon, first);
  });
});
