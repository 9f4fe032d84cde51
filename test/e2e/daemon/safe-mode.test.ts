// @load loud
/**
 * A third party's plugin that keeps the daemon from coming up does so three times; then the mounts are up
 * without it.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

/** It stands still in its effect, and the daemon with it, unless a file says that it was mended. */
const STUCK = `import { appendFileSync, existsSync } from 'node:fs';
import { definePlugin } from 'mountkeeper';
export default definePlugin({ name: 'stuck', version: '1.0.0', apiVersion: 1, description: 'Stands still.',
  register(ctx) {
    ctx.effect('stand still', () => {
      appendFileSync('STANDS', 'x');
      while (!existsSync('MENDED'));
      return () => undefined;
    });
  },
});
`;

interface PluginJson {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
}

describe("a third party's plugin that keeps the daemon from coming up", () => {
  let scratch: Scratch;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('safe-mode');
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    await mkdir(scratch.path('plugins/stuck'), { recursive: true });
    await writeFile(scratch.path('plugins/stuck/package.json'), '{ "type": "module" }');
    await writeFile(
      scratch.path('plugins/stuck/index.js'),
      STUCK.replace('MENDED', scratch.path('mended')).replace('STANDS', scratch.path('stands')),
    );
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        'plugins.stuck': { enabled: true, isolation: 'none' },
      },
    });
  });
  after(() => scratch.close());

  const stuck = async (): Promise<PluginJson | undefined> =>
    (await daemon.get<PluginJson[]>('/api/plugins')).body.find(({ name }) => name === 'stuck');
  const notices = async (): Promise<string> => (await daemon.get('/api/notices')).text;

  it('is left out of the fourth start, which says so, and its mounts are up', async () => {
    for (let count = 0; count < 3; count += 1) {
      void daemon.start(60_000).catch(() => undefined);
      await until(
        'it stands still',
        async () => (await readFile(scratch.path('stands'), 'utf8').catch(() => '')).length === count + 1,
        { timeoutMs: 30_000 },
      );
      daemon.signal('SIGKILL');
      await daemon.exit(10_000);
    }
    await daemon.start(60_000);
    await daemon.healthy();
    assert.match((await stuck())?.reason ?? '', /^the last 3 starts of the daemon failed/);
    assert.match(await notices(), /safe mode: the last 3 starts failed/);
  });

  it('is tried again by the next start', async () => {
    await daemon.stop('SIGTERM', 30_000);
    await writeFile(scratch.path('mended'), '');
    await daemon.start(60_000);
    await until('it is active', async () => (await stuck())?.state === 'active', { timeoutMs: 20_000 });
    assert.doesNotMatch(await notices(), /safe mode/);
  });

  it('is left out by --safe-mode as well, which is an option of run alone', async () => {
    await daemon.stop('SIGTERM', 30_000);
    await daemon.start(60_000, ['--safe-mode']);
    await daemon.healthy();
    assert.equal((await stuck())?.state, 'invalid');
    assert.match((await stuck())?.reason ?? '', /start it without --safe-mode/);
    const other = await daemon.cli('status', '--safe-mode');
    assert.deepEqual(
      [other.code, other.stderr.trim()],
      [64, "mountkeeper: --safe-mode is an option of 'run'"],
    );
  });
});
