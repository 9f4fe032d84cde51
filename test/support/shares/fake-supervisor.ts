/** A supervisor on fakes, for tests on a manual clock. */
import type { TestContext } from 'node:test';
import type { Config, LoadedConfig, ShareSpec } from 'mountkeeper';
import { StatusStore } from '../../../core/status.js';
import { Supervisor } from '../../../core/shares/supervisor.js';
import type { Kit } from './fake-shares.ts';

/** An accepted configuration with these shares. */
export function loaded(specs: readonly ShareSpec[], change: Partial<Config> = {}): LoadedConfig {
  const config = {
    connections: specs[0] ? [specs[0].connection] : [],
    shares: specs.map(({ share }) => share),
    supervisor: { poll_interval: '2s', stop_timeout: '10m', state_dir: '/nowhere' },
    bandwidth: { up: '0', down: '0' },
    ...change,
  } as unknown as Config;
  return { text: '', document: {}, config, warnings: [] };
}

/** A supervisor that was not started. */
export function create(kit: Kit, first: LoadedConfig) {
  const status = new StatusStore({ clock: kit.clock, log: kit.lines.log });
  const supervisor = new Supervisor(
    {
      clock: kit.clock,
      log: kit.lines.log,
      status,
      plugins: {
        hooks: kit.hooks,
        mounter: () => kit.present.mounter,
        prober: () => kit.present.prober,
        exporters: () => [kit.exporter],
        statusFields: () => ({}),
        shareReader: () => () => ({}),
      },
    },
    first,
  );
  const of = (name: string) => status.snapshot.record.shares.find((share) => share.name === name);
  return { supervisor, status, of };
}

/** A started supervisor that lets go when the test ends. */
export async function start(t: TestContext, kit: Kit, first: LoadedConfig) {
  const made = create(kit, first);
  await made.supervisor.start();
  t.after(() => Promise.all([made.supervisor.release(), kit.clock.advance(10_000)]));
  return made;
}
