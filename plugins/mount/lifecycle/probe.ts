import type { ShareSpec } from 'mountkeeper';
import { REMOTE, clearOptions } from '../options/remote-config.ts';
import { remotePath } from '../rclone/arguments.ts';
import { obscure } from '../options/obscure.ts';
import { isPasswordOption } from '../options/secret-options.ts';
import { readerCapabilities } from '../options/rights.ts';
import { rcloneToRun } from '../releases/chosen.ts';
import type { MountTools } from './tools.ts';
import { remoteFailure } from '../rclone/error-messages.ts';

/** The prober's own limit comes first; this one only ends a process that nobody waits for any more. */
const LONGEST_MS = 60_000;
const KEPT_OUTPUT_BYTES = 4_096;
const FOLDERS_OUTPUT_BYTES = 256 * 1024;
/**
 * Go's GOGC setting: the process lives for one listing, and collecting garbage takes a fifth of its
 * processor time. A folder of 100,000 entries then costs 120 MB instead of 90.
 */
const GARBAGE_PERCENT = '400';

/**
 * Lists the remote path with a short-lived rclone: the same binary, options and credentials as the mount
 * will have, in a process that can be killed whatever it hangs on. Its connection is passed in the
 * environment, because it caches nothing.
 */
export async function probeRemote(spec: ShareSpec, tools: MountTools, signal: AbortSignal): Promise<void> {
  await listRemote(spec, tools, { signal, args: [], maxOutputBytes: KEPT_OUTPUT_BYTES });
}

/** Names of the folders directly below the remote path. */
export async function remoteFolders(
  spec: ShareSpec,
  tools: MountTools,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const listed = await listRemote(spec, tools, {
    signal,
    args: ['--dirs-only', '--dir-slash=false'],
    maxOutputBytes: FOLDERS_OUTPUT_BYTES,
  });
  return listed.split('\n').filter((name) => name !== '');
}

interface Listing {
  readonly signal: AbortSignal;
  readonly args: readonly string[];
  readonly maxOutputBytes: number;
}

function listRemote(spec: ShareSpec, tools: MountTools, { args, ...rest }: Listing): Promise<string> {
  return askOnce(spec, tools, { ...rest, args: ['lsf', remotePath(spec), ...args, '--max-depth=1'] });
}

/** What a short-lived rclone with the share's connection says. Rejects as `RemoteFailure`. */
export async function askOnce(
  spec: ShareSpec,
  tools: MountTools,
  { signal, args, maxOutputBytes }: Listing,
): Promise<string> {
  const { command } = await tools.finder.find(rcloneToRun(tools.config().mount, tools.paths.stateDir));
  const result = await tools.processes.run({
    command,
    args: [
      ...args,
      '--config=',
      '--retries=1',
      '--low-level-retries=1',
      '--contimeout=30s',
      '--timeout=30s',
      '--log-level=ERROR',
    ],
    env: await environment(spec, command, tools),
    capabilities: readerCapabilities(spec.connection),
    timeoutMs: LONGEST_MS,
    signal,
    maxOutputBytes,
  });
  if (result.code !== 0) throw remoteFailure(result.stderr.split('\n'), 'the remote path cannot be listed');
  return result.stdout;
}

async function environment(
  spec: ShareSpec,
  command: string,
  tools: MountTools,
): Promise<Record<string, string>> {
  // Unknown which options are passwords: names that are known tell, and the probe itself says what is wrong.
  const providers = await tools.finder.providers(command).catch(() => undefined);
  const prefix = `RCLONE_CONFIG_${REMOTE.toUpperCase()}`;
  const environment: Record<string, string> = {
    GOGC: GARBAGE_PERCENT,
    [`${prefix}_TYPE`]: spec.connection.type,
  };
  for (const [name, value] of clearOptions(spec.connection, tools.secrets)) {
    const isPassword = isPasswordOption(providers, spec.connection.type, name);
    const plain = name === 'key_pem' ? value.trim().replaceAll(/\r\n|\r|\n/g, String.raw`\n`) : value;
    environment[`${prefix}_${name.toUpperCase()}`] = isPassword ? obscure(value) : plain;
  }
  return environment;
}
