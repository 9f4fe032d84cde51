/** `mountkeeper rclone`: official builds of rclone below the state folder, without a package of the system. */
import { dirname, join } from 'node:path';
import { durationMs } from 'mountkeeper';
import type { CliCommand, CliContext, Config } from 'mountkeeper';
import { createRcloneFinder } from '../rclone/installed.ts';
import { PROGRAM, isUnnamed, systemRclone } from './chosen.ts';
import type { InstallTools } from './install.ts';
import { releaseKey } from './signed-checksums.ts';
import type { ReleaseKey } from './signed-checksums.ts';
import { ReleaseStore } from './store.ts';
import { KNOWN_GOOD, parseVersion, versionName } from './versions.ts';
import type { Version } from './versions.ts';

const USAGE = 'install [VERSION] | install --file ZIP [SHA256SUMS] | list | use VERSION | use system';
const WRONG_USAGE = 64;
const SYSTEM = 'system';

export interface RcloneCommandOptions {
  /** Whose signature is taken; default: rclone's own. */
  readonly key?: () => Promise<ReleaseKey>;
  readonly stallMs?: number;
}

interface Workshop {
  readonly cli: CliContext;
  readonly config: Config;
  readonly store: ReleaseStore;
  readonly options: RcloneCommandOptions;
}

type Action = (words: readonly string[], workshop: Workshop) => Promise<number>;

export function rcloneCommand(options: RcloneCommandOptions = {}): CliCommand {
  return {
    name: 'rclone',
    usage: USAGE,
    summary:
      'Install an official build of rclone, checked against its signed checksums, beside the one of the ' +
      'system; list those that are there; choose which one mounts.',
    run: async (cli) => {
      const action = actionFor(cli.args);
      if (!action) {
        cli.printError(`usage: mountkeeper rclone ${USAGE}`);
        return WRONG_USAGE;
      }
      const config = await cli.config();
      const store = new ReleaseStore(config.supervisor.state_dir);
      return action({ cli, config, store, options });
    },
  };
}

/** `words`: how many each takes, at least and at most. */
const ACTIONS: Readonly<Record<string, { readonly words: readonly [number, number]; readonly run: Action }>> =
  {
    list: { words: [0, 0], run: list },
    install: { words: [0, 1], run: install },
    'install --file': { words: [1, 2], run: installFile },
    use: { words: [1, 1], run: use },
  };

/** Undefined where it is called wrongly. */
function actionFor([name = 'list', ...rest]: readonly string[]):
  ((workshop: Workshop) => Promise<number>) | undefined {
  const isFile = rest[0] === '--file';
  const words = isFile ? rest.slice(1) : rest;
  const key = isFile ? `${name} --file` : name;
  const action = Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : undefined;
  if (!action || words.some((word) => word.startsWith('-'))) return undefined;
  const [least, most] = action.words;
  if (words.length < least || words.length > most) return undefined;
  return (workshop) => action.run(words, workshop);
}

async function install([named]: readonly string[], workshop: Workshop): Promise<number> {
  const asked = named === undefined ? undefined : versionOf(named);
  const { cli, config, store, options } = workshop;
  const { installFromMirror, newestAt, refuseReplay } = await import('./install.ts');
  const { openMirror } = await import('./mirror.ts');
  const mirror = await openMirror({
    url: config.mount.rclone_mirror,
    proxy: config.mount.rclone_proxy,
    clock: cli.clock,
    signal: cli.signal,
    ...(options.stallMs !== undefined && { stallMs: options.stallMs }),
  });
  try {
    const version = await store.alone(async () => {
      const wanted = asked ?? (await newestAt(mirror));
      if (asked === undefined) refuseReplay(wanted, [KNOWN_GOOD, ...(await store.list())]);
      await installFromMirror(wanted, mirror, await toolsOf(workshop)).catch(orNoSpace(store));
      await store.choose(wanted);
      return wanted;
    });
    return tell(version, workshop);
  } finally {
    await mirror.close();
  }
}

async function installFile(
  [archive = '', sums = join(dirname(archive), 'SHA256SUMS')]: readonly string[],
  workshop: Workshop,
): Promise<number> {
  const { installFromFile } = await import('./install.ts');
  const { store } = workshop;
  const version = await store.alone(async () => {
    const taken = await installFromFile(archive, sums, await toolsOf(workshop)).catch(orNoSpace(store));
    await store.choose(taken);
    return taken;
  });
  return tell(version, workshop);
}

async function use([name = '']: readonly string[], workshop: Workshop): Promise<number> {
  const { store } = workshop;
  const version = name === SYSTEM ? undefined : versionOf(name);
  await store.alone(() => store.choose(version));
  return tell(version, workshop);
}

async function list(_: readonly string[], { cli, config, store }: Workshop): Promise<number> {
  const system = systemRclone(config.mount.rclone);
  const isNamed = !isUnnamed(config.mount.rclone);
  const { chosen } = store;
  const said = await createRcloneFinder(cli)
    .find(system)
    .then(
      ({ version }) => version.replace(/^rclone /, ''),
      (error: Error) => error.message,
    );
  const installed = (await store.list()).map((version) => ({
    version: versionName(version),
    used: !isNamed && versionName(version) === chosen,
    path: store.programOf(version),
  }));
  const inUse = isNamed ? undefined : chosen;
  const isMissing = inUse !== undefined && installed.every(({ version }) => version !== inUse);
  const rows = [
    ...installed,
    ...(isMissing
      ? [{ version: inUse, used: true, path: join(store.folder, inUse, PROGRAM), missing: true }]
      : []),
    { version: isNamed ? said : `${SYSTEM} (${said})`, used: isNamed || chosen === undefined, path: system },
  ];
  if (cli.json) cli.print(JSON.stringify(rows));
  else
    cli.table([
      ['', 'version', 'program'],
      ...rows.map((row) => [
        row.used ? '*' : '',
        row.version,
        'missing' in row ? `${row.path} (not there)` : row.path,
      ]),
    ]);
  const problem = inUse === undefined ? undefined : store.problemOf(inUse);
  if (problem !== undefined) cli.printError(`no share is mounted anew: ${problem}`);
  return 0;
}

function versionOf(text: string): Version {
  const version = parseVersion(text);
  if (!version) throw new Error(`"${text}" is no version of rclone; one is written like 1.75.0`);
  return version;
}

async function toolsOf({ cli, store, options }: Workshop): Promise<InstallTools> {
  const finder = createRcloneFinder(cli);
  return {
    store,
    key: await (options.key ?? releaseKey)(),
    askVersion: async (program) => (await finder.find(program)).version,
    progress: cli.progress,
    signal: cli.signal,
  };
}

function orNoSpace(store: ReleaseStore): (error: unknown) => never {
  return (error) => {
    const { code, cause } = error as NodeJS.ErrnoException & { readonly cause?: NodeJS.ErrnoException };
    if (code !== 'ENOSPC' && cause?.code !== 'ENOSPC') throw error;
    throw new Error(`no space is left for ${store.folder}: one release takes about 150 MiB meanwhile`, {
      cause: error,
    });
  };
}

/** What was done, and when it takes effect. */
function tell(version: Version | undefined, { cli, config, store }: Workshop): number {
  const path = version === undefined ? systemRclone(config.mount.rclone) : store.programOf(version);
  const isUsed = isUnnamed(config.mount.rclone);
  if (cli.json) {
    cli.print(JSON.stringify({ version: version ? versionName(version) : SYSTEM, path, used: isUsed }));
    return 0;
  }
  cli.print(`${version ? `rclone ${versionName(version)}` : "The system's rclone"} is chosen: ${path}`);
  cli.print(
    isUsed
      ? 'Each share takes it when it is mounted next; mounts that are up go on with the one they have' +
          `${renewed(config.mount.rclone_renew_after)}. \`mountkeeper reconnect SHARE\` mounts one anew now.`
      : `It is not used: mount.rclone or MOUNTKEEPER_RCLONE names ${config.mount.rclone}, which goes first.`,
  );
  return 0;
}

function renewed(after: string): string {
  return durationMs(after) > 0 ? `, and leave an older one once nobody has used the share for ${after}` : '';
}
