/** The set-up before the first start: in the command line's own process, writing the file itself. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder, refuseForeignPlace, undefinedWhenMissing } from 'mountkeeper';
import type { CliContext, ConfigAnswer, ConfigChanges, ConfigService } from 'mountkeeper';
import { callsOf } from './requests.ts';
import type { SetupCalls } from './requests.ts';
import { Setup } from './service.ts';
import { untilDone } from './terminal/until-done.ts';

const OTHERS = 0o007;

/**
 * The file names programs that this process runs: rejects with a sentence where it is not its user's own. To be
 * called before anything that obeys the file.
 */
export function refuseForeignConfig(cli: CliContext): Promise<void> {
  return refuseForeignPlace(cli.configFile);
}

export async function offlineCalls(cli: CliContext): Promise<SetupCalls> {
  await refuseForeignConfig(cli);
  const [config, clock] = [await cli.offline('config'), cli.clock];
  const mounter = await cli.offline('mounter');
  // Nobody looks around in the network where that plugin is off.
  const finder = await cli.offline('nasFinder').catch(() => undefined);
  const setup = new Setup({
    clock: () => clock,
    config: () => config,
    mounter: () => mounter,
    changes: () => changesOf(config),
    run: (command) => cli.run(command),
    signal: cli.signal,
  });
  return callsOf(setup, () => finder, 'file', cli.signal);
}

/** Held to the rules of documents over HTTP, as the daemon holds the same answers to them. */
function changesOf(config: ConfigService): Pick<ConfigChanges, 'check' | 'submit' | 'version'> {
  return {
    version: '',
    check: async (text, options) => {
      const { keepSecrets = false } = options ?? {};
      const check = await config.check(text, 'http', { keepSecrets });
      if (!check.ok) return check;
      const { diff, loaded } = check;
      return {
        ok: true,
        summary: diff.summary,
        changes: diff.changes,
        interrupts: { shares: [], servers: false, restart: false },
        warnings: loaded.warnings,
      };
    },
    submit: ({ text, keepSecrets }) => untilDone(() => submit(config, text, keepSecrets === true)),
  };
}

async function submit(config: ConfigService, text: string, keepSecrets: boolean): Promise<ConfigAnswer> {
  const applied = await config.apply({
    text,
    origin: 'http',
    keepSecrets,
    beforeWrite: () => prepareFile(config.file),
  });
  const answer = { summary: applied.ok ? applied.diff.summary : null, version: '' };
  if (applied.ok) return { status: 200, ok: true, message: `${config.file} is written`, ...answer };
  const { stage, message } = applied;
  const attempt = stage === 'write' ? 'the configuration cannot be written: ' : '';
  return { status: stage === 'write' ? 500 : 400, ok: false, message: `${attempt}${message}`, ...answer };
}

/**
 * A new file gets mode 0600. One that every user may read is closed before passwords are added to it. Rejects
 * where somebody else could lead what is written to another place.
 */
export async function prepareFile(file: string): Promise<void> {
  await refuseForeignPlace(file);
  await makeFolder(dirname(file));
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(undefinedWhenMissing);
  try {
    const found = await handle?.stat();
    if (found && (found.mode & OTHERS) !== 0) await handle?.chmod(found.mode & 0o7770);
  } finally {
    await handle?.close();
  }
}
