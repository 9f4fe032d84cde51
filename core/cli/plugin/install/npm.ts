/**
 * Runs the machine's own npm. Registry, proxy and credentials come from npm's configuration. The options here
 * see to it that no code of a package is run, whatever that configuration says.
 */
import type { Clock } from '../../../contract/platform.ts';
import { runShortCommand } from '../../../platform/processes/short-command.ts';

/** Slow lines, and registries that are tried again: npm itself gives up a request after 5 minutes. */
const TIMEOUT_MS = 600_000;
const MOST_OUTPUT_BYTES = 16 * 1024 ** 2;

/**
 * `--git`: a package's dependencies may name repositories, and a repository's own settings may name programs
 * that git or npm run. Versions of npm before `--allow-git` pass over that option, but not over a git that does
 * nothing.
 */
const ALWAYS = [
  '--json',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--no-dry-run',
  '--no-global',
  '--git=/bin/false',
  '--allow-git=none',
  '--loglevel=silent',
];

export interface Npm {
  /** The folder of an npm project; a `.npmrc` of the current folder does not count. */
  readonly project: string;
  /** Default: `npm`, by the search path. */
  readonly command?: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What npm failed with. The message is a sentence for people. */
export class NpmFault extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** What npm prints as JSON. Rejects with NpmFault, or with why npm cannot be run. `what` is named in messages. */
export async function runNpm(
  [command = '', ...args]: readonly string[],
  what: string,
  { project, command: npm = 'npm', clock, signal }: Npm,
): Promise<unknown> {
  const { PATH: _, ...env } = process.env as Record<string, string>;
  const result = await runShortCommand(
    {
      command: npm,
      args: [command, ...ALWAYS, '--prefix', project, ...args],
      env,
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: MOST_OUTPUT_BYTES,
      signal,
    },
    clock,
  ).catch((error: unknown) => {
    if (!/^command '.*' was not found/.test((error as Error).message)) throw error;
    throw new Error('npm is not on this machine; install it (it comes with Node.js) and try again', {
      cause: error,
    });
  });
  const answer = parsed(result.stdout);
  if (result.code === 0) return answer;
  const { error = {} } = (answer ?? {}) as { error?: { code?: unknown; summary?: unknown } };
  const code = typeof error.code === 'string' ? error.code : '';
  const summary = typeof error.summary === 'string' ? (error.summary.split('\n')[0] ?? '') : '';
  throw new NpmFault(code, sentenceFor(code, what, summary || result.stderr.trim().slice(-500)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Some commands of npm print nothing when there is nothing to say.
    return undefined;
  }
}

const UNREACHABLE =
  /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)$/;
const LOGIN = /^(?:E401|E403|ENEEDAUTH)$/;

function sentenceFor(code: string, what: string, summary: string): string {
  if (UNREACHABLE.test(code))
    return (
      `the registry cannot be reached (${code}); look at the network, and at registry and proxy in npm's ` +
      "configuration ('npm config get registry')"
    );
  if (code === 'E404') return `the registry knows no package ${what}`;
  if (code === 'ETARGET') return `the registry has no such version: ${what}`;
  if (code === 'EINTEGRITY')
    return `what was downloaded for ${what} is not what the registry promises (integrity); nothing is installed`;
  if (LOGIN.test(code)) return `the registry lets nobody have ${what} without a login ('npm login')`;
  if (code === 'EALLOWGIT' || code === 'ENOGIT')
    return `${what} wants a package from a git repository, which is not taken`;
  return `npm could not get ${what}: ${[code, summary].filter(Boolean).join(' ') || 'it did not say why'}`;
}
