/** Whom it hits when a plugin is switched off, by the services that it provides: also of third parties' protocols. */
import type { Config, ExportersService, PluginInfo, View } from 'mountkeeper';

export interface HitSources {
  readonly config: Pick<Config, 'shares'>;
  readonly exporters: Pick<ExportersService, 'list'>;
}

type Share = Config['shares'][number];

const EXPORTER = 'exporter:';
/** More of them make no question that anybody reads. */
const MOST_NAMES = 20;
const LABELS: Readonly<Record<string, string>> = { smb: 'SMB', nfs: 'NFS', webdav: 'WebDAV' };

function servicesOf({ contributes = [] }: PluginInfo): readonly string[] {
  return contributes.flatMap(([kind, names]) => (kind === 'services' ? names : []));
}

/** A mounter or uploader that goes leaves the mounts that are up; without it no other one comes up. */
function notMountedAgain(services: readonly string[], shares: readonly Share[]): readonly Share[] {
  if (services.includes('mounter')) return shares;
  return services.includes('uploader') ? shares.filter((share) => share.read_only !== true) : [];
}

function sentence(key: string, shares: readonly Share[], view: View, protocol = ''): string {
  const names = shares.slice(0, MOST_NAMES).map(({ name }) => name);
  const rest = shares.length > MOST_NAMES ? ['…'] : [];
  return view.plain(key, {
    count: shares.length,
    names: [...names, ...rest].join(view.plain('list-comma')),
    protocol,
  });
}

/** One sentence for each kind of harm; none where no share is hit. */
export function hitBy(info: PluginInfo, { config, exporters }: HitSources, view: View): readonly string[] {
  const services = servicesOf(info);
  const stuck = notMountedAgain(services, config.shares);
  const cutOff = exporters
    .list()
    .filter(
      ({ protocol, exporter }) => services.includes(EXPORTER + protocol) && exporter.isEnabled !== false,
    )
    .map(({ protocol }) => ({
      protocol,
      shares: config.shares.filter(({ protocols }) => (protocols as readonly string[]).includes(protocol)),
    }))
    .filter(({ shares }) => shares.length > 0);
  return [
    ...(stuck.length > 0 ? [sentence('switch-off-mounts', stuck, view)] : []),
    ...cutOff.map(({ protocol, shares }) =>
      sentence('switch-off-clients', shares, view, LABELS[protocol] ?? protocol),
    ),
  ];
}
