/** `mountkeeper token new`: makes a token, and the lines of the configuration that let it in. */
import { parseArgs } from 'node:util';
import { durationMs, editToml } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { schema } from './config.ts';
import type { WebToken } from './config.ts';
import { hashToken, makeToken } from './token.ts';

const USAGE = 'new NAME (--role ROLE | --verb VERB …) [--share SHARE …] [--expires 90d]';

/** The entry that is asked for. Throws a sentence. */
export function entryOf(args: readonly string[], token: string, now: number): WebToken {
  const {
    values: { role, verb, share, expires },
    positionals: [what, name, ...more],
  } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      role: { type: 'string' },
      verb: { type: 'string', multiple: true },
      share: { type: 'string', multiple: true },
      expires: { type: 'string' },
    },
  });
  if (what !== 'new' || name === undefined || more.length > 0) throw new Error('it needs "new" and one name');
  const entry = {
    name,
    token_hash: hashToken(token),
    ...(role !== undefined && { role }),
    ...(verb && { verbs: verb }),
    ...(share && { shares: share }),
    ...(expires !== undefined && { expires: momentOf(expires, now) }),
  };
  const { error, value } = schema.extract('tokens').validate([entry], { convert: false }) as {
    readonly error?: Error;
    readonly value: readonly WebToken[];
  };
  if (error) throw error;
  return value[0] as WebToken;
}

/** `90d`: from now on; else a moment in ISO 8601. */
function momentOf(text: string, now: number): string {
  if (/^\d{4}-/.test(text)) return text;
  return `${new Date(now + durationMs(text)).toISOString().slice(0, 19)}Z`;
}

async function run(cli: CliContext): Promise<number> {
  const token = makeToken();
  try {
    const entry = entryOf(cli.args, token, cli.clock.now());
    const toml = editToml('', [{ path: ['web', 'tokens', 0], value: entry }]).trim();
    if (cli.json) cli.print(JSON.stringify({ token, entry, toml }));
    else {
      cli.print(token);
      cli.printError('\nThe token is shown this once. Put these lines at the end of the configuration:\n');
      cli.printError(toml);
    }
    return 0;
  } catch (error) {
    cli.printError(`${(error as Error).message}\nusage: mountkeeper token ${USAGE}`);
    return 64;
  }
}

export const tokenCommand: CliCommand = {
  name: 'token',
  usage: USAGE,
  summary: 'Make a token for programs that use the API, and print what the configuration needs.',
  run,
};
