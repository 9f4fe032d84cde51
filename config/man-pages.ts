/**
 * Manual pages: the command line (1), the configuration (5) and the daemon (8), from the same tables as help
 * and reference.
 */
import { EXIT } from '../core/cli/exit-codes.ts';
import { inlineValue } from '../core/sdk/toml/value.ts';
import type { DeclaredKey } from '../core/config/schema/key-tree.ts';
import type { Described } from './command-grammar.ts';
import { EXIT_MEANINGS } from './plugin-pages.ts';
import { list, manual, prose, word } from './roff.ts';

export interface ManualSources {
  readonly commands: readonly Described[];
  readonly keys: readonly DeclaredKey[];
}

const CONFIG = '/etc/mountkeeper/mountkeeper.toml';

/** Text by path below the package's folder. */
export function manualPages(sources: ManualSources): ReadonlyMap<string, string> {
  return new Map([
    ['config/man/mountkeeper.1', commandPage(sources)],
    ['config/man/mountkeeper.toml.5', configPage(sources)],
    ['config/man/mountkeeper.8', daemonPage()],
  ]);
}

const OPTIONS: readonly (readonly [string, string])[] = [
  ['Fl -config Ar FILE', `The configuration.\nLeft out,\n.Ev MOUNTKEEPER_CONFIG ,\nelse\n.Pa ${CONFIG} .`],
  [
    'Fl -url Ar URL',
    'The daemon to talk to.\nLeft out,\n.Ev MOUNTKEEPER_URL ,\nelse its socket, else the address in the configuration.',
  ],
  ['Fl -json', 'Machine-readable output.'],
  ['Fl -help', 'How a subcommand is used.'],
  ['Fl -version', 'The version.'],
];

function exitStatus(): string {
  return [
    '.Sh EXIT STATUS',
    list(
      Object.entries(EXIT).map(([name, code]) => [
        String(code),
        prose(`${EXIT_MEANINGS[name as keyof typeof EXIT]}.`),
      ]),
    ),
  ].join('\n');
}

function commandPage({ commands }: ManualSources): string {
  const sorted = [...commands].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return manual({
    title: 'mountkeeper',
    section: 1,
    names: ['mountkeeper'],
    about: 'steer shares of a NAS that are kept on a local cache',
    parts: [
      '.Sh SYNOPSIS',
      '.Nm',
      '.Ar COMMAND',
      '.Op Fl -config Ar FILE',
      '.Op Fl -url Ar URL',
      '.Op Fl -json',
      '.Sh DESCRIPTION',
      '.Nm\nasks the daemon that\n.Xr mountkeeper 8\ndescribes, and shows what it says.',
      'What comes after\n.Sq \\-\\-\nbelongs to the subcommand as it is.',
      list(OPTIONS),
      '.Sh COMMANDS',
      list(
        sorted.map(({ name, usage, summary }) => [`Ic ${word(`${name} ${usage}`.trim())}`, prose(summary)]),
      ),
      '.Sh ENVIRONMENT',
      list([
        ['Ev MOUNTKEEPER_CONFIG', 'The configuration.'],
        ['Ev MOUNTKEEPER_URL', 'The daemon to talk to.'],
        ['Ev MOUNTKEEPER_PASSWORD', 'The password, where the configuration cannot be read or holds a hash.'],
      ]),
      '.Sh FILES',
      list([[`Pa ${CONFIG}`, 'The configuration.\nSee\n.Xr mountkeeper.toml 5 .']]),
      exitStatus(),
      '.Sh EXAMPLES',
      'Wait until it is safe to disconnect:',
      '.Dl mountkeeper wait \\-\\-synced \\-\\-timeout 10m',
      '.Sh SEE ALSO',
      '.Xr rclone 1 ,\n.Xr mountkeeper.toml 5 ,\n.Xr mountkeeper 8',
    ],
  });
}

/** `shares[].name` stands in `[[shares]]`, `web.port` in `[web]`. */
function sectionOf(path: string): string {
  const section = path.slice(0, path.lastIndexOf('.'));
  return section.endsWith('[]') ? `[[${section.replaceAll('[]', '')}]]` : `[${section.replaceAll('[]', '')}]`;
}

function keyEntry(key: DeclaredKey): readonly [string, string] {
  const value = key.default === undefined ? '' : `, default ${inlineValue(key.default)}`;
  const name = word(key.path.slice(key.path.lastIndexOf('.') + 1));
  return [
    `Ic ${name}`,
    [prose(key.description), '.br', prose(`${key.type}${value}; ${key.tier}.`)].join('\n'),
  ];
}

const FORM = [
  'The configuration is one TOML document. Relative paths are taken from its folder. Unknown keys are errors; ' +
    '"mountkeeper check" names line and column of each.',
  'Durations: "500ms", "30s", "15m", "12h", "7d", also joined as in "1h30m". Sizes, in binary units: "512K", ' +
    '"128M", "1.5G". Rates likewise, for each second: "10M" is 10 MiB/s, and "0" is unlimited.',
  'A secret is the text itself or a reference: { env = "NAME" }, { file = "/path" } or { credential = "name" }.',
  'A change takes effect at once. The word at the end of each key says what it disturbs: live nothing, protocol ' +
    'the servers that it concerns, per-share the mount of a share, global every mount that depends on it; ' +
    'restart waits for the next start.',
];

function configPage({ keys }: ManualSources): string {
  const sections = [...new Set(keys.map((key) => sectionOf(key.path)))];
  return manual({
    title: 'mountkeeper.toml',
    section: 5,
    names: ['mountkeeper.toml'],
    about: 'configuration of the Mountkeeper daemon',
    parts: [
      '.Sh DESCRIPTION',
      FORM.map(prose).join('\n.Pp\n'),
      ...sections.flatMap((section) => [
        `.Ss ${word(section)}`,
        list(keys.filter((key) => sectionOf(key.path) === section).map(keyEntry)),
      ]),
      '.Sh FILES',
      list([[`Pa ${CONFIG}`, 'The configuration, unless another is named.']]),
      '.Sh SEE ALSO',
      '.Xr mountkeeper 1 ,\n.Xr mountkeeper 8',
    ],
  });
}

const ABOUT_DAEMON = [
  '.Nm\nmounts each share by an\n.Xr rclone 1',
  prose(
    'of its own on a cache on the local disk, watches it, mounts it again when it dies or hangs, and shows it ' +
      'over SMB, NFS and WebDAV where that is switched on. Files that were written and are not on the NAS yet ' +
      'survive a crash of rclone, of the daemon and of the machine.',
  ),
  '.Pp',
  prose(
    'The mounts are processes of their own. They outlive a daemon that was killed or is replaced, and the next ' +
      'one takes them over.',
  ),
].join('\n');

const DAEMON_FILES: readonly (readonly [string, string])[] = [
  [`Pa ${CONFIG}`, 'The configuration.'],
  [
    'Pa /var/lib/mountkeeper',
    'Records of mounts and servers, what plugins keep, and the socket of\n.Xr mountkeeper 1 .',
  ],
  [
    'Pa /var/cache/mountkeeper',
    [
      prose('The cache. It may hold files that are not on the NAS yet: it must not be emptied while'),
      '.Ql mountkeeper wait \\-\\-synced\ndoes not end.',
    ].join('\n'),
  ],
];

const SIGNALS: readonly (readonly [string, string])[] = [
  [
    'SIGTERM',
    'Refuses new writes, brings up what waits, takes the mounts down and ends. A second one waits no longer: what ' +
      'is left is kept, listed, and goes up after the next start.',
  ],
  [
    'SIGHUP',
    'Reads the configuration and the plugin folders again and opens the log file anew. A document that is not ' +
      'valid changes nothing.',
  ],
  [
    'SIGUSR2',
    'Ends the daemon alone. Mounts and servers go on for the next one, so that nobody notices an upgrade.',
  ],
];

function daemonPage(): string {
  return manual({
    title: 'mountkeeper',
    section: 8,
    names: ['mountkeeper'],
    about: 'keep shares of a NAS mounted on a local cache',
    parts: [
      '.Sh SYNOPSIS',
      '.Nm mountkeeper',
      '.Cm run',
      '.Op Fl -config Ar FILE',
      '.Op Fl -json',
      '.Sh DESCRIPTION',
      ABOUT_DAEMON,
      '.Sh SIGNALS',
      list(SIGNALS.map(([name, text]) => [`Dv ${name}`, prose(text)])),
      '.Sh FILES',
      list(DAEMON_FILES),
      exitStatus(),
      '.Sh SEE ALSO',
      '.Xr mountkeeper 1 ,\n.Xr rclone 1 ,\n.Xr mountkeeper.toml 5 ,\n.Xr systemd.service 5',
    ],
  });
}
