/** Runners as the daemon starts them, for tests that need to say little of how. */
import type { PluginContext } from '../../../core/contract/plugin.ts';
import { createClock } from '../../../core/platform/clock.ts';
import { RunnerProcess } from '../../../core/plugins/runner/process/runner-process.ts';
import { RunnerSupervisor } from '../../../core/plugins/runner/process/runner-supervisor.ts';
import type { RunnerSupervisorOptions } from '../../../core/plugins/runner/process/runner-supervisor.ts';

interface Context extends Pick<PluginContext, 'log'> {
  /** Takes the commands that the plugin sends. */
  readonly send?: (name: string, value?: unknown) => Promise<void>;
}

export interface Special extends Partial<Omit<RunnerSupervisorOptions, 'ctx' | 'confinement' | 'begin'>> {
  /** The plugin's own keys; none unless said. */
  readonly config?: () => object;
}

/** In a process of its own unless `special` says otherwise; not started. */
export function supervisorOf(
  ctx: Context,
  confinement: RunnerSupervisorOptions['confinement'],
  { config = () => ({}), ...special }: Special = {},
): RunnerSupervisor {
  const { entry, folder, name, packageDir, permissions, stateDir } = confinement;
  return new RunnerSupervisor({
    ctx: ctx as unknown as PluginContext,
    confinement,
    clock: createClock(),
    crashes: [],
    launch: (options) => new RunnerProcess(options),
    onGivenUp: () => undefined,
    onAbsence: () => undefined,
    onLate: () => undefined,
    onNetwork: () => undefined,
    onEvent: () => undefined,
    begin: () => ({
      is: 'begin',
      task: 'run',
      entry,
      folder,
      name,
      declared: { guard: false, shareKeys: [], permissions },
      config: config(),
      paths: { stateDir, packageDir },
      logLevel: 'info',
      world: {},
    }),
    ...special,
  });
}
