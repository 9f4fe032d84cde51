/** The host keys that an SSH server shows, for a person who compares them: nothing here trusts one. */
import { createHash } from 'node:crypto';
import type { ConnectionConfig, ShortCommand, ShortCommandResult } from 'mountkeeper';

const SSH_PORT = 22;
const ANSWER_S = 5;
const LONGEST_MS = 10_000;
const MOST_OUTPUT_BYTES = 65_536;
/** `nas.local ssh-ed25519 AAAA…`, `[nas.local]:2222 ecdsa-sha2-nistp256 AAAA…` */
const KEY = /^\S{1,300} (?:ssh-|ecdsa-sha2-)([a-z0-9]{1,20}) ([A-Za-z0-9+/]{40,4000}={0,2})$/gm;

export interface HostKeyTools {
  readonly run: (command: ShortCommand) => Promise<ShortCommandResult>;
  readonly signal: AbortSignal;
}

/** As `ssh` shows them, such as `SHA256:… (ed25519)`; none where the server or `ssh-keyscan` does not tell. */
export async function shownHostKeys(
  { options }: Pick<ConnectionConfig, 'options'>,
  { run, signal }: HostKeyTools,
): Promise<readonly string[]> {
  const { host, port = SSH_PORT } = options as { readonly host: string; readonly port?: number };
  // `ssh-keyscan` takes a list of them.
  if (host.includes(',')) return [];
  // It is not installed, or hangs: the key cannot be shown.
  const unknown = (): { readonly stdout: string } => {
    signal.throwIfAborted();
    return { stdout: '' };
  };
  const { stdout } = await run({
    command: 'ssh-keyscan',
    // The address may begin as an option does.
    args: ['-T', String(ANSWER_S), '-p', String(port), '--', host],
    timeoutMs: LONGEST_MS,
    maxOutputBytes: MOST_OUTPUT_BYTES,
    signal,
    ...(process.geteuid?.() === 0 && { capabilities: [] }),
  }).catch(unknown);
  return [...stdout.matchAll(KEY)]
    .map(([, kind = '', key = '']) => `${fingerprintOf(key)} (${kind})`)
    .toSorted();
}

/** As RFC 4648 writes it, without what fills up. */
function fingerprintOf(key: string): string {
  const hash = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64');
  return `SHA256:${hash.replace(/=$/, '')}`;
}

/** A sentence for whoever sets the connection up. */
export function hostKeyAdvice(keys: readonly string[]): readonly string[] {
  if (keys.length === 0) return [];
  return [
    `the NAS shows these host keys now: ${keys.join(', ')}; compare them with those on its own pages, or with what ` +
      '`ssh-keygen -l -f` says on it: whoever else answers at its address has others; if ' +
      'they differ, change the password, which has been sent there already',
  ];
}
