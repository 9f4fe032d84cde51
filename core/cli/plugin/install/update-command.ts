/** `mountkeeper plugin update`: newer versions of what came from the registry. */
import type { CliContext } from '../../../contract/cli.ts';
import type { Permission } from '../../../contract/services.ts';
import { EXIT } from '../../exit-codes.ts';
import { mayOf } from '../author.ts';
import { agreeToMore, agreeToOlder } from './consent.ts';
import type { Agreement } from './consent.ts';
import { everyUserHere } from './every-user.ts';
import { fetchPackage } from './fetch.ts';
import { notInstalled, npmIn, scriptsNotRun, workshopOf } from './install-command.ts';
import type { Workshop } from './install-command.ts';
import { claimOf, examinePackage } from './judge.ts';
import { refuseLeftKeys } from './left-keys.ts';
import { isPinned } from './source.ts';
import type { Installed } from './store.ts';
import { unfitTable } from './unfit.ts';

/** All of them when no name is given. What cannot be updated stays as it is, and others go on. */
export async function updatePlugins(
  only: string | undefined,
  agreement: Agreement,
  cli: CliContext,
): Promise<number> {
  const workshop = await workshopOf(cli, agreement);
  const { store } = workshop;
  return store.alone(async () => {
    const meant = meantBy(only, await store.list());
    if (meant.length === 0 && !cli.json) cli.print('no plugin is installed from the registry');
    let code: number = EXIT.ok;
    for (const one of meant) if (!(await updated(one, workshop))) code = EXIT.failure;
    return code;
  });
}

/** Those from the registry, or the one named. Throws a sentence where the registry knows nothing of it. */
function meantBy(only: string | undefined, installed: readonly Installed[]): readonly Installed[] {
  if (only === undefined) return installed.filter(({ source }) => source.kind === 'registry');
  const one = installed.find(({ name }) => name === only);
  if (one === undefined) throw notInstalled(only, installed);
  const { kind, spec } = one.source;
  if (kind === 'registry') return [one];
  throw new Error(
    `${only} was installed from ${spec}; install it from there again: mountkeeper plugin install ${spec}`,
  );
}

async function updated(former: Installed, workshop: Workshop): Promise<boolean> {
  const { cli, peeked, store } = workshop;
  const { name, source } = former;
  try {
    return await store.withDraft(source, async (project) => {
      cli.progress(`npm looks for ${source.spec} …`);
      const fetched = await fetchPackage(source, npmIn(project, cli));
      const { version, integrity = '' } = fetched;
      if (version === former.version && integrity === (former.integrity ?? '')) {
        const why = isPinned(source.spec) ? `; it was installed as ${source.spec}` : '';
        const permissions = (await store.permissions(name)) ?? [];
        tellUpdate({ name, former: former.version, version, permissions }, `stays${why}`, cli);
        return true;
      }
      const claim = await claimOf(fetched, { peeked, store, installed: await store.list() });
      if (claim.name !== name) throw new Error(`it calls itself "${claim.name}" now; install it anew`);
      const { permissions } = claim;
      await agreeToOlder({ name, version }, former.version, workshop);
      await agreeToMore({ name, version, permissions }, workshop);
      const entry = await examinePackage(claim, fetched, peeked);
      await refuseLeftKeys(name, entry, cli.configFile);
      cli.signal.throwIfAborted();
      await store.putInPlace(name, fetched);
      const may = mayOf({ permissions, isolation: peeked.isolation.get(name) ?? 'own' });
      const unfit = await unfitTable({ name, contribution: entry?.contribution }, cli.configFile);
      const warning = await everyUserHere({ name, permissions }, peeked);
      tellUpdate(
        {
          name,
          former: former.version,
          version,
          integrity: fetched.integrity,
          permissions,
          ...scriptsNotRun(fetched),
          unfit,
          warning,
        },
        `-> ${version}  ${integrity}`.trimEnd() + `; it may ${may}`,
        cli,
      );
      return true;
    });
  } catch (error) {
    cli.signal.throwIfAborted();
    cli.printError(`${name} stays at ${former.version}: ${(error as Error).message}`);
    return false;
  }
}

interface Update {
  readonly name: string;
  readonly former: string;
  readonly version: string;
  readonly integrity?: string | undefined;
  /** The package has scripts for its installation. */
  readonly scripts_not_run?: boolean;
  /** Of the version that is there now. */
  readonly permissions: readonly Permission[];
  /** What its table in the configuration lacks, and what to do. */
  readonly unfit?: string | undefined;
  /** What its process may do beyond its permissions. */
  readonly warning?: string | undefined;
}

function tellUpdate(update: Update, words: string, cli: CliContext): void {
  if (cli.json) return cli.print(JSON.stringify(update));
  const { name, former, unfit, warning } = update;
  cli.print(`${name} ${former} ${words}`);
  for (const sentence of [unfit, warning]) if (sentence !== undefined) cli.print(`${name}: ${sentence}`);
}
