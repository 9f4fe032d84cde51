/** Services for subcommands that work without a daemon, such as the first run. */
import { existsSync } from 'node:fs';
import type { CliContext } from '../contract/cli.ts';
import type { Services } from '../contract/services.ts';
import { problemLines } from './check-command.ts';
import type { Offline } from './offline.ts';

/** The configuration file is invalid; the message says where and why. */
export class ConfigFault extends Error {}

/** What stands in a configuration file that is written for the first time. */
const FIRST_TEXT = [
  `# Mountkeeper's configuration. mountkeeper.toml(5) explains every key; "mountkeeper check" says what is`,
  '# wrong, and where. A change takes effect as soon as it is saved.',
  '',
  'connections = []',
  '',
].join('\n');

/** Opened by the first call: reading the file and inspecting the plugins costs time. */
export function createOfflineServices(offline: Offline, configFile: string): CliContext['offline'] {
  let opened: Promise<void> | undefined;
  return async <K extends keyof Services>(name: K): Promise<Services[K]> => {
    opened ??= open(offline, configFile);
    await opened;
    if (name === 'clock') return offline.clock as Services[K];
    if (name === 'config') return offline.config as unknown as Services[K];
    const service = offline.host.service(name);
    if (service === undefined) throw new Error(`no plugin that is on provides "${String(name)}"`);
    return service;
  };
}

async function open(offline: Offline, configFile: string): Promise<void> {
  await offline.discoverAll();
  const found = existsSync(configFile)
    ? await offline.config.loadFile()
    : await offline.config.check(FIRST_TEXT, 'file');
  if (!found.ok) throw new ConfigFault(problemLines(configFile, found).join('\n'));
  offline.config.commit(found.loaded);
  await offline.host.inspect(found.loaded);
}
