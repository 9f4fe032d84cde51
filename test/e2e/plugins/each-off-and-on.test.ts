// @start 9
/** Each plugin of the package is switched off and on in a running daemon: the share stays, all else comes back. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { inTreePlugins } from '../../support/plugins/in-tree.ts';

const SOON_MS = 30_000;
const API = 'control-api';

interface Listed {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
}

/** The plugin whose service it waits for. */
function waitsFor({ state, reason }: Listed): string | undefined {
  return state === 'waiting'
    ? /of the plugin "([^"]+)", which is disabled$/.exec(reason ?? '')?.[1]
    : undefined;
}

const names = (await inTreePlugins()).map(({ name }) => name);

describe('a plugin of the package', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let files: Files;
  let paths: readonly string[];
  let rclone: number;
  let ports: { readonly smb: number; readonly webdav: number };

  before(async () => {
    scratch = await createScratch('each-plugin');
    ports = { smb: await freePort(), webdav: await freePort() };
    nas = await Nas.create(scratch, { files: { 'a.bin': 3_000 } });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: {
        smb: { enabled: true, port: ports.smb, listen: ['127.0.0.1'] },
        webdav: { enabled: true, port: ports.webdav, listen: '127.0.0.1' },
        warmup: { rules: [{ share: 'work', path: '' }] },
        'plugins.example': { enabled: true },
      },
    });
    await daemon.start();
    await daemon.healthy();
    rclone = await daemon.rclonePid('work');
    paths = await offered();
  });
  after(() => scratch.close());

  /** What the API has. */
  const offered = async (): Promise<readonly string[]> => {
    const { paths: all } = JSON.parse((await daemon.get('/api/openapi.json')).text) as { paths: object };
    return Object.keys(all).sort();
  };
  const listed = async (): Promise<readonly Listed[]> =>
    (await daemon.get<readonly Listed[]>('/api/plugins')).body;
  const becomes = (name: string, state: string): Promise<unknown> =>
    until(
      `${name} is ${state}`,
      async () => (await listed()).some((one) => one.name === name && one.state === state),
      { timeoutMs: SOON_MS },
    );
  /** Without the API nobody can ask. */
  const goesOff = (name: string): Promise<unknown> =>
    name === API
      ? until(
          'the API is gone',
          async () => (await daemon.get('/api/status').catch(() => undefined))?.status !== 200,
          {
            timeoutMs: SOON_MS,
          },
        )
      : becomes(name, 'disabled');

  it('is named here, each of them', async () => {
    assert.ok(names.length > 20, String(names));
    assert.deepEqual(
      (await listed()).filter(({ state }) => state !== 'active').map(({ name }) => name),
      [],
    );
  });

  for (const name of ['smb', 'webdav'] as const)
    it(`lets nobody in any more once the answer says that it is off: ${name}`, async () => {
      const answers = (): Promise<boolean> =>
        new Promise((resolve) => {
          const socket = connect(ports[name], '127.0.0.1');
          socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
          scratch.defer(() => void socket.destroy());
        });
      await until(`${name} is there`, answers, { timeoutMs: SOON_MS });
      const answer = await daemon.submit(
        daemon.text({ sections: { [`plugins.${name}`]: { enabled: false } } }),
      );
      const isThere = await answers();
      const { ok, still_open: stillOpen = [] } = answer.body;
      assert.deepEqual([ok, isThere && !stillOpen.includes(name)], [true, false], answer.text);
      assert.equal((await daemon.submit(daemon.text())).body.ok, true);
      await becomes(name, 'active');
    });

  for (const name of names)
    it(`is off and on again: ${name}`, async () => {
      await daemon.writeConfig(daemon.text({ sections: { [`plugins.${name}`]: { enabled: false } } }));
      await goesOff(name);
      // The mount and what it shows stay, whatever goes.
      const seen = `${daemon.mountPoint('work')}/a.bin`;
      assert.equal(await files.checksum(seen, 10_000), await nas.checksum('a.bin'));
      if (name !== API)
        assert.deepEqual(
          (await listed()).filter(
            (one) => ![one.name, waitsFor(one)].includes(name) && one.state !== 'active',
          ),
          [],
          'no other plugin goes with it, but those that need a service of it wait',
        );
      await daemon.writeConfig(daemon.text());
      await becomes(name, 'active');
      await daemon.healthy(['work'], SOON_MS);
      assert.deepEqual(await offered(), paths, 'all that the API had is there again');
      assert.equal(await files.checksum(seen, 10_000), await nas.checksum('a.bin'));
      const written = await files.write(`${daemon.mountPoint('work')}/${name}.bin`, 2_000);
      await daemon.synced(SOON_MS);
      assert.equal(await nas.checksum(`${name}.bin`), written);
      assert.equal(await daemon.rclonePid('work'), rclone, 'the share was never mounted anew');
    });
});
