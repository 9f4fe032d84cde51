/** Takes a remote from a configuration file of rclone. rclone itself reads the file. */
import type { Processes } from 'mountkeeper';
import { withSmallFile } from '../terminal/small-file.ts';
import { foreignProblem } from './foreign-file.ts';
import { plainFolder } from '../init/flags.ts';
import { assertPlain } from './imported.ts';
import type { Imported } from './imported.ts';
import { reveal } from './reveal.ts';

const MOST_BYTES = 1_048_576;
const LONGEST_MS = 20_000;
const MOST_PROVIDER_BYTES = 16 * 1_048_576;

/** They lead to other remotes of the same file, which a connection cannot name. */
const WRAPPERS = new Set([
  'alias',
  'cache',
  'chunker',
  'combine',
  'compress',
  'crypt',
  'hasher',
  'union',
  'memory',
]);

/** Each renewal of a token gives another one to renew with, and the one before is refused from then on. */
const RENEWED_ONCE = new Set(['box', 'hidrive', 'jottacloud']);

/** Options that are commands, by the type of the remote: rclone runs them on this machine. */
const COMMANDS: Readonly<Record<string, string>> = { sftp: 'ssh', webdav: 'bearer_token_command' };

interface Provider {
  readonly Name?: string;
  readonly Prefix?: string;
  readonly Options?: readonly { readonly Name: string; readonly IsPassword?: boolean }[];
}

export interface Rclone {
  readonly command: string;
  readonly processes: Processes;
  readonly signal: AbortSignal;
}

/** `from`: `REMOTE` or `REMOTE:PATH`. Rejects with a sentence. */
export async function importRemote(file: string, from: string, rclone: Rclone): Promise<Imported> {
  const [, name = '', path = ''] = /^([^:]+)(?::(.*))?$/s.exec(from) ?? [];
  assertPlain('the path', path);
  const remotes = await remotesIn(file, rclone);
  const { type = '', ...options } = remoteOf(remotes, name, file);
  if (WRAPPERS.has(type))
    throw new Error(`"${name}" is a remote of type ${type}, which leads to another one; import that one`);
  const passwords = await passwordsOf(type, rclone);
  const given = Object.entries(options).filter(([, value]) => value !== '');
  const clear = new Map(
    given.map(([option, value]) => [option, passwords.has(option) ? revealed(option, value) : value]),
  );
  for (const [option, value] of clear)
    assertPlain(`the option ${option} of "${name}"`, value, { mayHaveLines: true });
  const root = path.startsWith('/') ? `/${plainFolder(path)}` : plainFolder(path);
  const doubts = [
    ...(RENEWED_ONCE.has(type) && clear.has('token') ? [tokenDoubt(type)] : []),
    ...commandDoubts(type, name, clear),
  ];
  return { type, options: clear, remotePath: root, readOnly: false, name, notes: [], doubts };
}

function tokenDoubt(type: string): string {
  return (
    `${type} lets a token be renewed once: asking the NAS uses it up, for the rclone that has it now, too. Each ` +
    'start of a mount begins with the token of the configuration, so once it has been renewed the share fails ' +
    '(invalid_grant) until the connection gets a new one'
  );
}

/** Its value may hold a password, and is not shown. */
function commandDoubts(type: string, name: string, given: ReadonlyMap<string, string>): readonly string[] {
  const option = Object.hasOwn(COMMANDS, type) ? COMMANDS[type] : undefined;
  if (option === undefined || !given.has(option)) return [];
  const instead =
    option === 'ssh' ? '; host, port, user, passwords, keys and known_hosts_file mean nothing then' : '';
  return [
    `the option ${option} of "${name}" is a command that rclone runs on this machine, as the user of the daemon, ` +
      `whenever it connects${instead}`,
  ];
}

type Remotes = Readonly<Record<string, Readonly<Record<string, string>>>>;

function remotesIn(path: string, rclone: Rclone): Promise<Remotes> {
  const what = `the configuration of rclone ${path}`;
  return withSmallFile({ path, what, mostBytes: MOST_BYTES, problem: foreignProblem }, ({ fd }) =>
    // Through this process: just the file that was judged, whatever its path leads to by now.
    ask(rclone, ['config', 'dump', '--config', `/proc/${process.pid}/fd/${fd}`, '--ask-password=false']),
  );
}

function remoteOf(remotes: Remotes, name: string, file: string): Readonly<Record<string, string>> {
  const remote = Object.hasOwn(remotes, name) ? remotes[name] : undefined;
  if (remote) return remote;
  const known = Object.keys(remotes).slice(0, 20).join(', ');
  throw new Error(`${file} has no remote "${name}"; it has ${known === '' ? 'none' : known}`);
}

function revealed(option: string, value: string): string {
  try {
    return reveal(value);
  } catch (cause) {
    throw new Error(`the option ${option} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** Which options of a backend rclone keeps obscured; it says so itself. */
async function passwordsOf(type: string, rclone: Rclone): Promise<ReadonlySet<string>> {
  const providers = await ask<readonly Provider[]>(rclone, ['config', 'providers', '--config=']);
  const provider = providers.find(({ Name: name, Prefix: prefix }) => name === type || prefix === type);
  if (!provider) throw new Error(`the installed rclone knows no backend "${type}"`);
  return new Set((provider.Options ?? []).filter((one) => one.IsPassword).map((one) => one.Name));
}

async function ask<T>({ command, processes, signal }: Rclone, args: readonly string[]): Promise<T> {
  const password = process.env['RCLONE_CONFIG_PASS'];
  const { code, stdout, stderr } = await processes.run({
    command,
    args,
    ...(password !== undefined && { env: { RCLONE_CONFIG_PASS: password } }),
    timeoutMs: LONGEST_MS,
    maxOutputBytes: MOST_PROVIDER_BYTES,
    signal,
  });
  if (code === 0) return JSON.parse(stdout) as T;
  if (/decrypt|password/i.test(stderr))
    throw new Error('the configuration of rclone is encrypted; give its password in RCLONE_CONFIG_PASS');
  throw new Error(
    `rclone cannot read its configuration: ${stderr.trim().split('\n').at(-1)?.slice(-300) ?? ''}`,
  );
}
