import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { Config } from 'mountkeeper';
import { createSmbExporter } from '../../../plugins/smb/exporter.ts';
import type { SmbTools } from '../../../plugins/smb/exporter.ts';
import { FakeMount, planOf, spec } from '../../support/shares/fake-shares.ts';

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
      shares: {
        list: () => [{ ...shown, health: 'healthy', remoteAnswers: true }],
      },
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
});
