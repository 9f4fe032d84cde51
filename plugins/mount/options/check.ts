import type { Config, ConfigProblem, Services } from 'mountkeeper';
import { connectionProblems } from './providers.ts';
import type { Provider } from './providers.ts';
import { rcloneToRun, systemRclone } from '../releases/chosen.ts';
import { createRcloneFinder } from '../rclone/installed.ts';
import type { KnownBackends, RcloneFinder } from '../rclone/installed.ts';
import { turnableMountPoints } from '../lifecycle/passage.ts';
import { isPasswordOption } from './secret-options.ts';

const finders = new WeakMap<Services['processes'], RcloneFinder>();
/** The command line checks the configuration before there is a daemon, which checks it with processes of its own. */
const backends: KnownBackends = new Map();

/**
 * One finder, with its cached answers, for the checks and the mounter; the cache is stored on disk once
 * there is a state folder.
 */
export function finderFor(processes: Services['processes'], stateDir?: string): RcloneFinder {
  const finder = finders.get(processes) ?? createRcloneFinder(processes, backends);
  finders.set(processes, finder);
  if (stateDir !== undefined) finder.rememberIn(stateDir);
  return finder;
}

/**
 * Problems that only the installed rclone can find. Without rclone there are none: the mount then fails
 * with a sentence that says how to install it.
 */
export async function check(
  config: Config,
  services: Pick<Services, 'processes' | 'secrets' | 'clock'>,
): Promise<readonly ConfigProblem[]> {
  const problems = [
    ...addressProblems(config),
    ...optionValueProblems(config),
    ...samePlaceProblems(config),
    ...(await turnableWarnings(config, services)),
  ];
  if (config.connections.length === 0) return problems;
  const stateDir = config.supervisor.state_dir;
  // Without rclone nothing is known of backends; that rclone is missing is a problem of its own.
  const providers = await Promise.resolve()
    .then(() => finderFor(services.processes, stateDir).providers(rcloneFor(config)))
    .catch(() => undefined);
  return providers ? [...problems, ...backendProblems(config, providers)] : problems;
}

/** Of shares that are not mounted where they should be; the others are. */
async function turnableWarnings(
  { shares }: Config,
  { processes }: Pick<Services, 'processes'>,
): Promise<ConfigProblem[]> {
  const said = await turnableMountPoints(shares, processes);
  return shares.flatMap(({ name }, index) => {
    const message = said.get(name);
    if (message === undefined) return [];
    return [
      { path: `shares[${index}].mount_point`, message: `share "${name}": ${message}`, isWarning: true },
    ];
  });
}

/** Whoever may not see which one is chosen asks the system's: it knows nearly the same. */
function rcloneFor({ mount, supervisor }: Config): string {
  try {
    return rcloneToRun(mount, supervisor.state_dir);
  } catch {
    // The mount says what is wrong with the chosen one, and so does `doctor`.
    return systemRclone(mount.rclone);
  }
}

/** The configuration is shown, sent and kept in a history: what is secret stands in keys that are masked. */
function addressProblems({ mount }: Config): ConfigProblem[] {
  const advice = {
    rclone_mirror:
      'name a mirror that needs none, or fetch the archive and run `mountkeeper rclone install --file`',
    rclone_proxy:
      'leave the key out and set the variable https_proxy where `mountkeeper rclone install` is run',
  };
  return (['rclone_mirror', 'rclone_proxy'] as const).flatMap((key) =>
    hasCredentials(mount[key])
      ? [
          {
            path: `mount.${key}`,
            message: `mount.${key} must hold no user name and no password, which would be shown: ${advice[key]}`,
          },
        ]
      : [],
  );
}

function hasCredentials(address: string): boolean {
  // Of the two, the proxy may be empty.
  if (!URL.canParse(address)) return false;
  const { username, password } = new URL(address);
  return username !== '' || password !== '';
}

function backendProblems(config: Config, providers: readonly Provider[]): ConfigProblem[] {
  return config.connections.flatMap((connection, index) =>
    connectionProblems(providers, connection.type, Object.keys(connection.options ?? {})).map(
      ({ option, message }) => ({
        path: option === undefined ? `connections[${index}].type` : `connections[${index}].options.${option}`,
        message: `connection "${connection.name}": ${message}`,
      }),
    ),
  );
}

/** rclone's configuration is text in which `%(name)s` is replaced by another option. */
function optionValueProblems(config: Config): ConfigProblem[] {
  return config.connections.flatMap((connection, index) =>
    Object.entries(connection.options ?? {}).flatMap(([name, value]) => {
      const isTrouble =
        typeof value === 'string' &&
        !isPasswordOption(undefined, connection.type, name) &&
        value.includes('%(');
      return isTrouble
        ? [
            {
              path: `connections[${index}].options.${name}`,
              message: `the value of "${name}" holds "%(…)s", which rclone would replace`,
            },
          ]
        : [];
    }),
  );
}

/** Two shares at one path would hide each other. */
function samePlaceProblems(config: Config): ConfigProblem[] {
  const places = config.shares.map((share) => share.mount_point.replace(/(?<!\/)\/+$/, ''));
  return places.flatMap((place, index) => {
    const other = places.findIndex(
      (one, at) => at !== index && (one === place ? at < index : place.startsWith(`${one}/`)),
    );
    if (other < 0) return [];
    return [
      {
        path: `shares[${index}].mount_point`,
        message:
          `share "${config.shares[index]?.name}" would be mounted ` +
          `${places[other] === place ? 'at the same path as' : 'below'} share ` +
          `"${config.shares[other]?.name}"`,
      },
    ];
  });
}
