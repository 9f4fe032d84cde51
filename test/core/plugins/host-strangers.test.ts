/** The host with plugins that it finds, copies and runs in processes as the daemon does. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { LoadedConfig } from '../../../core/contract/config.ts';
import type { PluginInfo } from '../../../core/contract/services.ts';
import { createClock } from '../../../core/platform/clock.ts';
import { packageDir } from '../../../core/plugins/discovery/stage.ts';
import { Rediscovery } from '../../../core/plugins/discovery/rediscovery.ts';
import { createPluginHost } from '../../../core/plugins/host.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { place, runnersOf, source } from '../../support/plugins/strangers.ts';

const PATIENCE = { timeoutMs: 60_000 };

interface Bench {
  readonly scratch: Scratch;
  /** What is looked at again, by the hand of the test. */
  readonly clock: ReturnType<typeof createManualClock>;
  readonly rediscovery: Rediscovery;
  /** How often plugins were looked for. */
  readings(): number;
  /** How often it has come up. */
  bloomed(): number;
  garden(): PluginInfo | undefined;
}

async function open(t: TestContext): Promise<Bench> {
  const scratch = await createScratch('host-strangers');
  t.after(() => scratch.close());
  await letOthersEnter(scratch.root);
  const { log, entries } = collectLog();
  let readings = 0;
  const stateDir = scratch.path('state');
  for (const folder of ['tree', 'plugins', 'state']) await mkdir(scratch.path(folder), { recursive: true });
  const host = createPluginHost({
    dirs: { inTree: scratch.path('tree') },
    services: { clock: createClock(), paths: { stateDir, packageDir } },
    projectors: [],
    clock: createClock(),
    log,
    scheduler: { add: async () => () => undefined },
    onPassing: (isPassing) => rediscovery.passing(isPassing),
    send: async () => undefined,
  });
  scratch.defer(() => host.stop('shutdown'));
  const config = { config: { plugins: { garden: { enabled: true } } } } as unknown as LoadedConfig;
  const request = { thirdPartyDirs: [scratch.path('plugins')], stateDir, enabled: new Set(['garden']) };
  const clock = createManualClock();
  const rediscovery = new Rediscovery({
    clock,
    log,
    run: async () => {
      await host.discover(request);
      await host.apply(config);
      readings += 1;
    },
  });
  scratch.defer(() => rediscovery.close());
  return {
    scratch,
    clock,
    rediscovery,
    readings: () => readings,
    bloomed: () => entries.filter(({ msg }) => msg === 'in bloom').length,
    garden: () => host.list().find(({ name }) => name === 'garden'),
  };
}

describe("a third party's plugin", () => {
  it('comes back after its process has ended though three versions that cannot be loaded came since', async (t) => {
    const { scratch, rediscovery, bloomed, garden } = await open(t);
    const body = "ctx.effect('bloom', () => { ctx.log.warn('in bloom'); return () => undefined; });";
    await place(scratch, 'garden', source('garden', body));
    await rediscovery.ask();
    await until('it is up', () => bloomed() === 1, PATIENCE);
    for (const word of ['one', 'two', 'three']) {
      await place(scratch, 'garden', `const ${word} = ;`);
      await rediscovery.ask();
      assert.match(garden()?.reason ?? '', /SyntaxError/);
    }
    const [runner] = await runnersOf(process.pid);
    process.kill(runner!, 'SIGKILL');
    await until('it is back', () => bloomed() === 2, PATIENCE);
  });

  it('is tried again by itself where its first run was ended by a signal, each time later', async (t) => {
    const { scratch, clock, rediscovery, readings, garden } = await open(t);
    const mark = scratch.path('short-of-memory');
    writeFileSync(mark, '');
    const index = `import { existsSync } from 'node:fs';
if (existsSync(${JSON.stringify(mark)})) process.kill(process.pid, 'SIGKILL');
${source('garden', '')}`;
    await place(scratch, 'garden', index, { permissions: ['files'] });
    await rediscovery.ask();
    const [state, reason] = [garden()?.state, garden()?.reason];
    assert.deepEqual([state, reason], ['invalid', 'it was ended by SIGKILL; loading it is tried again']);
    await clock.advance(10_000);
    await until('it was tried again', () => readings() === 2, PATIENCE);
    assert.equal(garden()?.state, 'invalid');
    await rm(mark);
    await clock.advance(59_000);
    assert.equal(readings(), 2, 'it waits longer');
    await clock.advance(1_000);
    await until('it is up', () => garden()?.state === 'active', PATIENCE);
  });
});
