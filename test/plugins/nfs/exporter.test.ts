import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { Config } from 'mountkeeper';
import { createNfsExporter } from '../../../plugins/nfs/exporter.ts';
import type { NfsTools } from '../../../plugins/nfs/exporter.ts';
import { nfsPaths } from '../../../plugins/nfs/paths.ts';
import { FakeMount, planOf, spec } from '../../support/shares/fake-shares.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

describe('shares over NFS', () => {
  it('are shown to the machines of a new document at the next look, though no hook told of it', async (t) => {
    const scratch = await createScratch('nfs-exporter');
    t.after(() => scratch.close());
    await mkdir(nfsPaths(scratch.root).root);
    const settings = {
      enabled: true,
      port: 2049,
      listen: '127.0.0.1',
      allowed_clients: [],
    };
    const documentFor = (...clients: string[]) =>
      ({
        nfs: settings,
        shares: [{ name: 'a', clients }],
      }) as unknown as Config;
    let document = documentFor('192.0.2.1');
    const shown = {
      spec: spec('a', { protocols: ['nfs'] }),
      mount: new FakeMount(planOf(spec('a')), 'a'),
    };
    const exporter = createNfsExporter({
      clock: createManualClock(),
      log: pino({ level: 'silent' }),
      paths: { stateDir: scratch.root, packageDir: '' },
      shares: {
        list: () => [{ ...shown, health: 'healthy', remoteAnswers: true }],
      },
      mountTable: { list: async () => [], find: async () => undefined },
      settings,
      config: () => document,
      owner: { uid: 0, gid: 0 },
    } as unknown as NfsTools);
    const isForNobody = () =>
      exporter.notices().some(({ message }) => message.includes('no machine may mount'));
    await exporter.add(shown.spec, shown.mount);
    await exporter.look(new AbortController().signal);
    assert.equal(isForNobody(), false);
    document = documentFor();
    await exporter.look(new AbortController().signal);
    assert.equal(isForNobody(), true);
  });
});
