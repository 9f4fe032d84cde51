import { sendCommand } from './parts.ts';
import { sentence } from './platform/log/thrown.ts';
import type { Parts } from './parts.ts';

const HALF_APPLIED = 'half-applied';

/** Reads the configuration file and sends the document to be applied. An invalid document changes nothing. */
export async function reloadFile(
  parts: Pick<Parts, 'commands' | 'config' | 'host' | 'log' | 'status'>,
): Promise<void> {
  const { config, host, log, status } = parts;
  const former = config.current;
  const check = await config.loadFile();
  // Another document was accepted and written while this one was checked: applying the older one now would
  // undo that.
  if (config.current !== former) return reloadFile(parts);
  if (!check.ok) {
    const problems = check.problems.map(
      (problem) => `${config.file}:${problem.line ?? 1}:${problem.column ?? 1}: ${problem.message}`,
    );
    log.error({ problems }, 'configuration file refused, the running configuration stays');
    status.setStanding('config-file', {
      level: 'error',
      message: `the configuration file is not valid, the former one stays in force: ${problems.join('; ')}`,
    });
    return;
  }
  status.setStanding('config-file', undefined);
  for (const warning of check.loaded.warnings) log.warn({ warning }, 'configuration');
  if (check.diff.tier === undefined) config.commit(check.loaded);
  else {
    await sendCommand(parts, 'reload', [check.loaded]);
    // What is not certain in time has a line in the log.
    await host.service('exporters')?.enforce();
  }
}

/** Has a document applied, and tells for as long as that fails half-way. Rejects with what it failed of. */
export async function applyWhole(
  status: Pick<Parts['status'], 'setStanding'>,
  apply: () => Promise<void>,
): Promise<void> {
  try {
    await apply();
    status.setStanding(HALF_APPLIED, undefined);
  } catch (error) {
    status.setStanding(HALF_APPLIED, {
      level: 'error',
      message: `the accepted configuration is not in force as a whole, it is applied once more: ${sentence(error)}`,
    });
    throw error;
  }
}
