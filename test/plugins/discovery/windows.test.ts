import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { pino } from 'pino';
import type { Clock, Processes, ProcessSpec } from 'mountkeeper';
import { checks } from '../../../plugins/discovery/doctor.ts';
import { powerless, Wsdd, wsddSpec } from '../../../plugins/discovery/wsdd.ts';
import { until } from '../../support/platform/wait.ts';

const turn = promisify(setImmediate);

interface Section {
  readonly enabled: boolean;
  readonly port?: number;
  readonly listen: string | readonly string[];
}

const doctor = async (sections: Readonly<Record<string, Section>>): Promise<readonly string[]> => {
  const exporters = Object.entries(sections).map(([protocol, { enabled, port = 1, listen }]) => ({
    protocol,
    exporter: {
      isEnabled: enabled,
      listensAt: { port, addresses: [listen].flat() },
      add: async () => undefined,
      remove: async () => undefined,
    },
  }));
  return (await checks(exporters)).map(({ title, detail }) => `${title}: ${detail}`);
};

describe('the helper that shows this machine in Explorer', () => {
  it('is told its name and networks, and is another one when they change', () => {
    const neighbour = { name: 'shelf', workgroup: 'TEAM', addresses: ['192.0.2.9', '192.0.2.7'] };
    const program = { command: '/usr/sbin/wsdd', user: 'nobody:nogroup' };
    const spec = wsddSpec(program, neighbour);
    assert.deepEqual(spec.args, [
      '--shortlog',
      '--ipv4only',
      '--preserve-case',
      '-n',
      'shelf',
      '-w',
      'TEAM',
      '-u',
      'nobody:nogroup',
      '-i',
      '192.0.2.7',
      '-i',
      '192.0.2.9',
    ]);
    assert.equal(
      wsddSpec(program, { ...neighbour, addresses: ['192.0.2.7', '192.0.2.9'] }).fingerprint,
      spec.fingerprint,
    );
    assert.notEqual(
      wsddSpec(program, { ...neighbour, addresses: ['192.0.2.7'] }).fingerprint,
      spec.fingerprint,
    );
    const rights = { user: { uid: 990, gid: 991 }, capabilities: [] };
    const asUser = wsddSpec({ command: '/usr/sbin/wsdd', rights }, neighbour);
    assert.deepEqual(
      [asUser.rights, asUser.args.includes('-u')],
      [rights, false],
      'it is that user from the start',
    );
    assert.notEqual(asUser.fingerprint, spec.fingerprint);
  });

  it('is planned anew only when something else is to be shown', async () => {
    let plans = 0;
    const started: (readonly string[])[] = [];
    const start = async ({ args, fingerprint }: ProcessSpec) => {
      started.push(args.filter((arg) => arg.startsWith('192.')));
      let end: (exit: object) => void = () => undefined;
      const exited = new Promise((resolve) => (end = resolve));
      const stop = async () => end({ code: 0, signal: null, lastLines: [] });
      return { fingerprint, exited, stop, isAlive: () => true, release: () => undefined };
    };
    const wsdd = new Wsdd({
      clock: { monotonic: () => 0, sleep: async () => undefined } as unknown as Clock,
      log: pino({ level: 'silent' }),
      processes: {
        adopt: async () => undefined,
        run: async () => ({ code: 1, stdout: '', stderr: '' }),
        start,
      } as unknown as Processes,
      locate: async () => {
        plans += 1;
        return '/usr/bin/wsdd';
      },
    });
    const show = async (...addresses: string[]) => {
      for (let look = 0; look < 3; look += 1) {
        await wsdd.settle({ name: 'shelf', workgroup: 'TEAM', addresses });
        await until('it has settled', () => started.at(-1)?.join() === addresses.join(), {
          timeoutMs: 5_000,
        });
        await turn();
      }
    };
    await show('192.0.2.7');
    assert.equal(plans, 1);
    await show('192.0.2.7', '192.0.2.9');
    // Once for the one that runs, and once for the one that is started.
    assert.equal(plans, 3);
    await wsdd.close(true);
  });

  it('has no rights, whatever the system calls its group of nobodies', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mountkeeper-group-'));
    try {
      await writeFile(join(folder, 'debian'), 'root:x:0:\nnogroup:x:65534:\n');
      await writeFile(join(folder, 'fedora'), 'root:x:0:\nnobody:x:65534:\n');
      assert.deepEqual(
        [await powerless(join(folder, 'debian')), await powerless(join(folder, 'fedora'))],
        ['nobody:nogroup', 'nobody:nobody'],
      );
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });
});

describe('what doctor says about discovery', () => {
  it('is that nothing is announced while all is off or on loopback', async () => {
    const nothing = ['Discovery: nothing is announced: nothing is served beyond this machine'];
    assert.deepEqual(
      await doctor({
        smb: { enabled: true, port: 445, listen: ['127.0.0.1', 'lo'] },
        nfs: { enabled: false, listen: '0.0.0.0' },
      }),
      nothing,
    );
  });

  it('names what is announced, and that Explorer knows one port alone', async () => {
    const said = await doctor({
      smb: { enabled: true, port: 4_450, listen: ['0.0.0.0'] },
      nfs: { enabled: true, port: 2_049, listen: '192.0.2.7' },
    });
    assert.deepEqual(said, [
      'Discovery for macOS and Linux: smb, nfs by multicast DNS',
      'Discovery for Windows: off: Explorer knows only port 445, and smb.port is 4450',
    ]);
  });
});
