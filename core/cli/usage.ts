/** The texts of `--help`: of the command line as a whole, and of one subcommand. */
import type { CliCommand } from '../contract/cli.ts';
import { DEFAULT_CONFIG } from './arguments.ts';
import { hang, wrap } from './wrap.ts';

type Described = Pick<CliCommand, 'name' | 'usage' | 'summary'>;

export const PLUGIN_USAGE =
  'list | enable NAME | log-level NAME LEVEL | new NAME [--ts] | check DIR [--yes] | search WORDS | ' +
  'install PACKAGE[@VERSION] | install FOLDER | ' +
  'install TARBALL [--yes] | update [NAME] [--yes] | ' +
  'migrate NAME [--yes] | remove NAME [--force]';

/** The core's own subcommands; plugins add the others. */
export const OWN_COMMANDS: readonly Described[] = [
  {
    name: 'run',
    usage: '[--safe-mode]',
    summary: "Run the daemon in the foreground; in safe mode without third parties' plugins.",
  },
  {
    name: 'check',
    usage: '',
    summary: 'Check the configuration file; exit 78 and FILE:line:column for what is wrong.',
  },
  { name: 'doctor', usage: '', summary: 'Check this machine and say what to do.' },
  {
    name: 'support',
    usage: '[FILE]',
    summary: 'Collect status, logs, versions and the configuration, without secrets, in one archive.',
  },
  {
    name: 'plugin',
    usage: PLUGIN_USAGE,
    summary:
      'List plugins, bring back one that broke off, begin a new one, check one; find, install, update and ' +
      'remove those of others, which are off until the configuration switches them on; bring the table of one to the ' +
      'form of its new version.',
  },
];

const OPTIONS: readonly (readonly [string, string])[] = [
  ['--config FILE', `Configuration file; default: MOUNTKEEPER_CONFIG, else ${DEFAULT_CONFIG}.`],
  [
    '--url URL',
    'Address of the daemon; default: MOUNTKEEPER_URL, else its socket, else the address in the configuration.',
  ],
  ['--json', 'Machine-readable output.'],
];

export function overview(contributed: readonly Described[], width: number): string {
  const commands = [...OWN_COMMANDS, ...contributed].toSorted((one, other) =>
    one.name.localeCompare(other.name),
  );
  return [
    'Usage: mountkeeper COMMAND [--config FILE] [--url URL] [--json]',
    '',
    ...columns(
      commands.map(({ name, summary }) => [name, summary]),
      width,
    ),
    '',
    ...wrap('mountkeeper help COMMAND shows how one is used.', width),
    ...wrap(
      `The configuration is ${DEFAULT_CONFIG} unless --config or MOUNTKEEPER_CONFIG names another.`,
      width,
    ),
    ...wrap(
      'Exit codes: 0 done, 1 failed, 64 wrong usage, 75 time ran out, 78 configuration not valid.',
      width,
    ),
  ].join('\n');
}

/** How one subcommand is used. */
export function page(command: Described, width: number): string {
  return [
    hang(`Usage: mountkeeper ${command.name} `, command.usage.replaceAll(/\[[^[\]]*\]/g, unbroken), width)
      .replaceAll(JOINED, ' ')
      .trimEnd(),
    '',
    ...wrap(command.summary, width),
    '',
    ...columns(OPTIONS, width),
  ].join('\n');
}

const JOINED = '\u00a0';

/** An option and its value stay on one line. */
function unbroken(text: string): string {
  return text.replaceAll(' ', JOINED);
}

function columns(rows: readonly (readonly [string, string])[], width: number): readonly string[] {
  const widest = Math.max(...rows.map(([head]) => head.length));
  return rows.map(([head, text]) => hang(`  ${head.padEnd(widest)}  `, text, width));
}
