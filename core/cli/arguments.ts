/** Splits a command line into the subcommand, the options that the core knows, and what is left for the subcommand. */

export interface Arguments {
  readonly command: string | undefined;
  readonly rest: readonly string[];
  readonly config: string | undefined;
  readonly url: string | undefined;
  readonly json: boolean;
  readonly help: boolean;
  readonly version: boolean;
}

/** Throws a sentence when an option lacks its value. */
export function parseArguments(argv: readonly string[]): Arguments {
  const rest: string[] = [];
  const values = new Map<string, string>();
  const flags = new Set<string>();
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    const [name = '', inline] = splitOption(word);
    if (name === '--config' || name === '--url') {
      const value = inline ?? argv[(index += 1)];
      if (value === undefined || value === '') throw new Error(`${name} needs a value`);
      values.set(name, value);
    } else if (['--json', '--help', '-h', '--version'].includes(word)) flags.add(word);
    else rest.push(word);
  }
  const command = rest[0]?.startsWith('-') ? undefined : rest.shift();
  return {
    command, rest,
    config: values.get('--config'), url: values.get('--url'),
    json: flags.has('--json'), help: flags.has('--help') || flags.has('-h'), version: flags.has('--version'),
  };
}

function splitOption(word: string): readonly [string, string?] {
  const equals = word.indexOf('=');
  if (!word.startsWith('--') || equals === -1) return [word];
  return [word.slice(0, equals), word.slice(equals + 1)];
}
