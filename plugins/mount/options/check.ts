import type { Config, ConfigProblem, Services } from 'mountkeeper';
import { connectionProblems } from './providers.ts';
import type { Provider } from './providers.ts';
import { rcloneToRun } from '../releases/chosen.ts';
import { createRcloneFinder } from '../rclone/installed.ts';
import type { RcloneFinder } from '../rclone/installed.ts';
import { isPasswordOption } from './secret-options.ts';

const finders = new WeakMap<Services['processes'], RcloneFinder>();

/**
 * One finder, with its cached answers, for the checks and the mounter; the cache is stored on disk once
 * there is a state folder.
 */
export function finderFor(processes: Services['processes'], stateDir?: string): RcloneFinder {
  const finder = finders.get(processes) ?? createRcloneFinder(processes);
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
    ...optionValueProblems(config),
    ...samePlaceProblems(config),
    ...unfinishedProblems(config),
  ];
  if (config.connections.length === 0) return problems;
  const stateDir = config.supervisor.state_dir;
  // Without rclone nothing is known of backends; that rclone is missing is a problem of its own.
  const providers = await Promise.resolve()
    .then(() => finderFor(services.processes, stateDir).providers(rcloneToRun(config.mount, stateDir)))
    .catch(() => undefined);
  return providers ? [...problems, ...backendProblems(config, providers)] : problems;
}

/**
 * The write layer can lose changes in cases that decision 26 lists: nobody should switch it on by copying a
 * line.
 */
function unfinishedProblems({ mount }: Config): ConfigProblem[] {
  if (!mount.write_layer || process.env['MOUNTKEEPER_UNFINISHED'] === 'write-layer') return [];
  const message = 'mount.write_layer is unfinished and can lose changes, so it is refused: take the line out';
  return [{ path: 'mount.write_layer', message }];
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
