import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { Config, Mount } from 'mountkeeper';
import { createSmbExporter } from '../../../plugins/smb/exporter.ts';
import type { SmbTools } from '../../../plugins/smb/exporter.ts';
import { FakeMount, planOf, spec, sharesOf } from '../../support/shares/fake-shares.ts';

describe('shares over SMB', () => {
  it('are shown to the users of a new document at the next look, though no hook told of it', async () => {
    const asked: unknown[] = [];
    const documentFor = (...users: string[]) =>
      ({
        smb: { enabled: users.length > 0 },
        get shares() {
          asked.push(users.join());
          return [{ name: 'a', users, protocols: ['smb'] }];
        },
      }) as unknown as Config;
    let document = documentFor('anna', 'ben');
    const shown = {
      spec: spec('a'),
      mount: new FakeMount(planOf(spec('a')), 'a'),
    };
    const exporter = createSmbExporter({
      clock: createManualClock(),
      log: pino({ level: 'silent' }),
      paths: { stateDir: '/nowhere', packageDir: '' },
      shares: sharesOf(() => [{ ...shown, health: 'healthy', remoteAnswers: true }]),
      exporters: { list: () => [], mayServe: () => false },
      settings: {
        enabled: true,
        port: 445,
        listen: ['127.0.0.1'],
        guest: false,
        users: [],
      },
      config: () => document,
      owner: { uid: 0, gid: 0 },
    } as unknown as SmbTools);
    await exporter.add(shown.spec, shown.mount);
    await exporter.look(new AbortController().signal);
    asked.length = 0;
    document = documentFor('anna');
    await exporter.look(new AbortController().signal);
    await exporter.look(new AbortController().signal);
    // Whether it is shown, and to whom; once for both looks.
    assert.deepEqual(asked, ['anna', 'anna']);
    await assert.rejects(async () => exporter.enforce?.(), /taken over/);
    // Switched off: so it is once another exporter has stopped the server.
    document = documentFor();
    await assert.rejects(async () => exporter.enforce?.(), /being stopped/);
  });

  it('are taken off while nothing reads from a remote that is away, and shown once something does', async () => {
    const mount: Mount = new FakeMount(planOf(spec('a')), 'a');
    const live = { spec: spec('a'), mount, health: 'healthy' as const, remoteAnswers: true };
    const document = {
      smb: { enabled: true },
      shares: [{ name: 'a', protocols: ['smb'] }],
    } as unknown as Config;
    const exporter = createSmbExporter({
      clock: createManualClock(),
      log: pino({ level: 'silent' }),
      paths: { stateDir: '/nowhere', packageDir: '' },
      shares: sharesOf(() => [live]),
      exporters: { list: () => [], mayServe: () => false },
      settings: { enabled: true, port: 445, listen: ['127.0.0.1'], guest: true, users: [] },
      config: () => document,
      owner: { uid: 0, gid: 0 },
    } as unknown as SmbTools);
    const look = async (reader: Partial<Mount>, remoteAnswers: boolean) => {
      Object.assign(mount, { readerPid: undefined, rcPort: 5572 }, reader);
      live.remoteAnswers = remoteAnswers;
      await exporter.look(new AbortController().signal);
      return exporter.notices().some(({ message }) => /nothing can be read/.test(message));
    };
    await exporter.add(live.spec, mount);
    const noProcess = 2 ** 30;
    // A killed rclone is about to be replaced, and one that lives shows what it knows.
    assert.equal(await look({ readerPid: noProcess }, true), false);
    assert.equal(await look({ readerPid: process.pid }, false), false);
    assert.equal(await look({}, false), false);
    assert.equal(await look({ readerPid: noProcess }, false), true);
    assert.equal(await look({ readerPid: process.pid }, false), false);
    // It came up without its remote.
    assert.equal(await look({ rcPort: 0 }, false), true);
    assert.equal(await look({ readerPid: process.pid }, true), false);
    // What it reads may be the empty folder that a lost disk was mounted on.
    assert.equal(await look({ readerPid: process.pid, isRootLost: true }, true), true);
    assert.equal(await look({ readerPid: process.pid, isRootLost: false }, true), false);
  });
});
