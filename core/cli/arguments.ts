/**
 * Splits a command line into the subcommand, the options that the core knows, and the subcommand's own
 * arguments.
 */

export interface Arguments {
  readonly command: string | undefined;
  readonly rest: readonly string[];
  readonly config: string | undefined;
  readonly url: string | undefined;
  readonly json: boolean;
  readonly help: boolean;
  readonly version: boolean;
  /** For `run`: third-party plugins stay off. */
  readonly safeMode: boolean;
}

export const DEFAULT_CONFIG = '/etc/mountkeeper/mountkeeper.toml';

/** The configuration that a command line means. */
export function configFileOf({ config }: Pick<Arguments, 'config'>): string {
  return config ?? process.env.MOUNTKEEPER_CONFIG ?? DEFAULT_CONFIG;
}

/** The command line is wrong; the message says what to write instead. */
export class UsageFault extends Error {}

const WITH_VALUE = ['--config', '--url'];
const FLAGS = ['--json', '--help', '-h', '--version', '--safe-mode'];

export function optionNames(): readonly string[] {
  return [...WITH_VALUE, ...FLAGS];
}

/**
 * What comes after `--` is passed to the subcommand unchanged. Throws a sentence when an option lacks its
 * value.
 */
export function parseArguments(argv: readonly string[]): Arguments {
  const end = argv.indexOf('--');
  const words = end === -1 ? [...argv] : argv.slice(0, end);
  const rest: string[] = [];
  const values = new Map<string, string>();
  const flags = new Set<string>();
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [name, inline] = splitOption(word);
    if (WITH_VALUE.includes(name)) values.set(name, valueOf(name, inline ?? words.shift()));
    else if (FLAGS.includes(word)) flags.add(word);
    else rest.push(word);
  }
  const command = rest[0]?.startsWith('-') === true ? undefined : rest.shift();
  return {
    command,
    rest: end === -1 ? rest : [...rest, ...argv.slice(end + 1)],
    config: values.get('--config'),
    url: values.get('--url'),
    json: flags.has('--json'),
    help: flags.has('--help') || flags.has('-h'),
    version: flags.has('--version'),
    safeMode: flags.has('--safe-mode'),
  };
}

function valueOf(name: string, value: string | undefined): string {
  if (value === undefined || value === '' || value.startsWith('--'))
    throw new UsageFault(`${name} needs a value`);
  return value;
}

function splitOption(word: string): readonly [string, string?] {
  const equals = word.indexOf('=');
  if (!word.startsWith('--') || equals === -1) return [word];
  return [word.slice(0, equals), word.slice(equals + 1)];
}
