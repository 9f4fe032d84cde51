import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Config, MountPlan } from 'mountkeeper';
import { schema } from '../../../../plugins/mount/config.ts';
import { adoptedPlan } from '../../../../plugins/mount/layer/adopted-plan.ts';
import { createPlans } from '../../../../plugins/mount/lifecycle/mount-plan.ts';
import type { SharePlan } from '../../../../plugins/mount/lifecycle/mount-plan.ts';
import type { MountingTools } from '../../../../plugins/mount/lifecycle/tools.ts';

describe('the plan of a share that a former daemon left mounted', () => {
  let root: string;
  let cacheDir: string;
  let first: Config;
  let second: Config;
  let plain: Config;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-adopted-'));
    cacheDir = join(root, 'work');
    await mkdir(cacheDir);
    first = configOf({ ssh: 'ssh me@nas1' });
    second = configOf({ ssh: 'ssh me@nas2' });
    plain = configOf({});
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const configOf = (options: Record<string, unknown>): Config =>
    ({
      mount: schema.validate({}).value,
      cache: { dir: root, max_size: '0', max_age: '30d', min_free_space: '1G' },
      shares: [{ name: 'work', connection: 'nas', remote_path: 'p', mount_point: '/m', protocols: [] }],
      connections: [{ name: 'nas', type: 'sftp', options: { host: 'a', ...options } }],
    }) as unknown as Config;

  const toolsFor = (config: Config): MountingTools =>
    ({
      config: () => config,
      plans: createPlans(() => config, { resolve: () => 'clear' }),
      log: { warn: () => undefined },
    }) as unknown as MountingTools;

  const planned = (config: Config): SharePlan => {
    const { shares, connections } = config;
    const [share, connection] = [shares[0], connections[0]];
    assert.ok(share && connection);
    return toolsFor(config).plans.of({ share, connection });
  };
  const adopted = (plan: MountPlan, config: Config): Promise<MountPlan> =>
    adoptedPlan('work', { plan, cacheDir }, toolsFor(config));
  /** As a former version left it. */
  const leave = async (config: Config): Promise<MountPlan> => {
    const { lesser, mount, place } = planned(config);
    await writeFile(join(cacheDir, 'place'), `${lesser?.place ?? place}\n`);
    return lesser?.mount ?? mount;
  };

  it('is the one of now where nothing has changed, so that it is not mounted anew', async () => {
    const left = await leave(first);
    assert.notEqual(left.identity, planned(first).mount.identity);
    assert.deepEqual(await adopted(left, first), planned(first).mount);
    assert.deepEqual(await adopted(left, first), planned(first).mount, 'by the next daemon, too');
  });

  it('leads to where it did where other options have changed', async () => {
    const left = await leave(first);
    const tuned = configOf({ ssh: 'ssh me@nas1', chunk_size: '64k' });
    const { identity, place } = planned(tuned).mount;
    assert.deepEqual(await adopted(left, tuned), { ...left, identity, place });
  });

  it('is left as it was where the option has changed since this version took it up', async () => {
    const left = await leave(first);
    await adopted(left, first);
    assert.deepEqual(await adopted(left, second), left);
  });

  it('is left as it was where the option came since then', async () => {
    const left = await leave(plain);
    assert.deepEqual(await adopted(left, plain), left);
    assert.deepEqual(await adopted(left, first), left);
  });

  it('is left as it was for a share that is not in the configuration', async () => {
    const left = await leave(first);
    assert.deepEqual(await adopted(left, { ...first, shares: [] }), left);
  });
});
