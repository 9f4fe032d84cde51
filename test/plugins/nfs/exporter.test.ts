import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { Config, HandleFolder, Mount } from 'mountkeeper';
import { createNfsExporter } from '../../../plugins/nfs/exporter.ts';
import type { NfsTools } from '../../../plugins/nfs/exporter.ts';
import type { ServedExport } from '../../../plugins/nfs/server-config.ts';
import { nfsPaths } from '../../../plugins/nfs/paths.ts';
import { FakeMount, planOf, spec, sharesOf } from '../../support/shares/fake-shares.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

const settings = {
  enabled: true,
  port: 2049,
  listen: '127.0.0.1',
  allowed_clients: [],
};
const documentFor = (...clients: string[]) =>
  ({ nfs: settings, shares: [{ name: 'a', clients, protocols: ['nfs'] }] }) as unknown as Config;

/** An exporter with one share, and the exports that it would keep for a server. */
async function setUp(t: TestContext, mount: Mount, config: () => Config, allowed: readonly string[] = []) {
  const scratch = await createScratch('nfs-exporter');
  t.after(() => scratch.close());
  await mkdir(nfsPaths(scratch.root).root);
  const shown = { spec: spec('a', { protocols: ['nfs'] }), mount };
  const exporter = createNfsExporter({
    clock: createManualClock(),
    log: pino({ level: 'silent' }),
    paths: { stateDir: scratch.root, packageDir: '' },
    shares: sharesOf(() => [{ ...shown, health: 'healthy', remoteAnswers: true }]),
    mountTable: { list: async () => [], find: async () => undefined },
    settings: { ...settings, allowed_clients: allowed },
    config,
    owner: { uid: 0, gid: 0 },
  } as unknown as NfsTools);
  await exporter.add(shown.spec, mount);
  return {
    exporter,
    look: () => exporter.look(new AbortController().signal),
    /** The next number, and what had one when it was drawn. */
    book: async () =>
      JSON.parse(await readFile(nfsPaths(scratch.root).book, 'utf8')) as {
        next: number;
        exports: ServedExport[];
      },
  };
}

describe('shares over NFS', () => {
  it('are shown to the machines of a new document at the next look, though no hook told of it', async (t) => {
    let document = documentFor('192.0.2.1');
    const { exporter, look } = await setUp(t, new FakeMount(planOf(spec('a')), 'a'), () => document);
    const isForNobody = () =>
      exporter.notices().some(({ message }) => message.includes('no machine may mount'));
    await look();
    assert.equal(isForNobody(), false);
    document = documentFor();
    await look();
    assert.equal(isForNobody(), true);
  });

  it('come with a warning of an allowed client that would be nobody', async (t) => {
    const mount = new FakeMount(planOf(spec('a')), 'a');
    const mapped = '::FFFF:192.0.2.5';
    const { exporter } = await setUp(t, mount, () => documentFor('192.0.2.1'), [
      mapped,
      '192.0.2.6',
      'fd00::1',
    ]);
    const said = exporter.notices().filter(({ message }) => message.includes('in the form of IPv6'));
    assert.deepEqual(
      said.map(({ level, message }) => [level, message.includes(mapped)]),
      [['warning', true]],
    );
  });

  it('are not said to be shut while the document that switches NFS off waits for another exporter', async (t) => {
    let document = documentFor('192.0.2.1');
    const { exporter } = await setUp(t, new FakeMount(planOf(spec('a')), 'a'), () => document);
    await assert.rejects(async () => exporter.enforce?.(), /taken over/);
    document = { ...document, nfs: { ...settings, enabled: false } };
    await assert.rejects(async () => exporter.enforce?.(), /being stopped/);
  });

  it('are shown from a folder of handles, under another number for another process', async (t) => {
    const mount: Mount = new FakeMount(planOf(spec('a')), 'a');
    const keepers = [1, 2].map(() => spawn('sleep', ['60']));
    t.after(() => keepers.forEach((one) => one.kill('SIGKILL')));
    let folder = (): Promise<HandleFolder> => Promise.reject(new Error('no bindfs'));
    const end = () => Promise.resolve();
    mount.handleFolder = () => folder();
    const document = documentFor('192.0.2.1');
    const { exporter, look, book } = await setUp(t, mount, () => document);
    const problem = () =>
      exporter.notices().find(({ message }) => message.includes('not shown over NFS'))?.message;
    assert.match(problem() ?? '', /no bindfs/);
    folder = () => Promise.resolve({ path: '/handles', pid: keepers[0]!.pid!, end });
    await look();
    assert.equal(problem(), undefined);
    const first = (await book()).next;
    await look();
    assert.equal((await book()).next, first, 'nothing has changed');
    folder = () => Promise.resolve({ path: '/handles', pid: keepers[1]!.pid!, end });
    keepers[0]!.kill('SIGKILL');
    await once(keepers[0]!, 'exit');
    await look();
    const second = await book();
    assert.notEqual(second.next, first);
    assert.deepEqual(
      second.exports.map(({ share, path, isMirror }) => ({ share, path, isMirror })),
      [{ share: 'a', path: '/handles', isMirror: true }],
    );
  });
});
