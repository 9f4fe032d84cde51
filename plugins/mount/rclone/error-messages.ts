import type { ManagedProcess, RemoteEvidence, RemoteFailure } from 'mountkeeper';
import { masked } from '../options/hidden-values.ts';

/**
 * An address that no machine has, so dialling from it fails in the kernel: the circuit breaker has rclone dial from
 * there while the NAS is away.
 */
export const NOWHERE = '240.0.0.1';
const OFFLINE = 'the NAS is offline';

const REFUSED = 'the remote refused the user name or password';
const KEY_UNREADABLE = 'the private key of the connection cannot be read; check key_file and key_file_pass';
const NO_ENTRY = 'the remote does not let this user into the path';
const NO_PATH = 'the path is not there on the remote; check remote_path';

/** What rclone says, the plain sentence, and what it shows about the remote. The first match wins. */
type Sentences = readonly (readonly [said: RegExp, sentence: string, remote?: RemoteEvidence])[];

const OF_THE_REMOTE: Sentences = [
  [
    /unable to authenticate|permission denied \(|auth(entication|orization)? (failed|required)|401 unauthorized/i,
    REFUSED,
    'answers',
  ],
  [
    /login incorrect|logon fail|STATUS_LOGON_FAILURE|bad username or (password|authentication)/i,
    REFUSED,
    'answers',
  ],
  [/InvalidAccessKeyId|SignatureDoesNotMatch|530 /i, REFUSED, 'answers'],
  [/key is not password protected|cannot decode encrypted private keys/i, KEY_UNREADABLE],
  [/decryption password incorrect|failed to parse private key/i, KEY_UNREADABLE],
  [
    /knownhosts|host key (is )?(unknown|mismatch)|key mismatch/i,
    'the host key of the remote is not the one that known_hosts_file names',
    'answers',
  ],
  [
    /no such host|server misbehaving|name resolution|lookup \S+ on /i,
    'the host name of the remote cannot be found; check its spelling and the DNS',
    'silent',
  ],
  [
    // A proxy before the NAS answers in its place.
    /\b50[234]\b|bad gateway|gateway time-?out|service unavailable/i,
    'what stands before the remote answers that it cannot be reached',
    'silent',
  ],
  [
    /connection refused/i,
    'the remote refuses connections; is its service running, and is the port right?',
    'silent',
  ],
  [
    /no route to host|network is unreachable|host is down/i,
    'there is no way to the remote; check the network',
    'silent',
  ],
  [
    /i\/o timeout|deadline exceeded|timed? ?out|context canceled/i,
    'the remote does not answer in time',
    'silent',
  ],
  [/directory not found|no such file or directory|object not found|404 not found/i, NO_PATH, 'answers'],
  [/NoSuchBucket|STATUS_OBJECT_(NAME|PATH)_NOT_FOUND|bad_network_name/i, NO_PATH, 'answers'],
  [/permission denied|access denied|403 forbidden|AccessDenied|STATUS_ACCESS_DENIED/i, NO_ENTRY, 'answers'],
  [/certificate|x509|tls: /i, "the remote's certificate is not accepted", 'answers'],
  [
    /[Cc]onnection reset|[Bb]roken pipe|\bEOF\b|[Cc]onnection lost|[Ff]ailed to (dial|connect)|[Cc]ouldn't connect/,
    'the connection to the remote breaks off',
    'silent',
  ],
  [/no space left|disk quota exceeded|out of space/i, 'there is no space left'],
  [
    /didn't find (backend|section)|unknown (type|backend)/i,
    'the installed rclone does not know this type of connection',
  ],
];

/** Of a call that goes to the remote alone: nothing is mounted by it. */
const OF_CALLS: Sentences = [...OF_THE_REMOTE, [/operation not permitted/i, NO_ENTRY, 'answers']];

/** Of an rclone that mounts, where the same words may come from this machine. */
const OF_MOUNTS: Sentences = [
  ...OF_THE_REMOTE,
  [
    /fusermount3?[":]* (?:executable file |command )?not found/i,
    'fusermount3 is missing; install the package fuse3',
  ],
  [
    /\/dev\/fuse|fuse device not found/i,
    '/dev/fuse cannot be opened; load the kernel module fuse, or give the container the device',
  ],
  [/allow_other/i, 'other users are not let in: set user_allow_other in /etc/fuse.conf'],
  [/not empty|is not an? empty/i, 'the mount point is not empty'],
  [/already mounted/i, 'something is already mounted at the mount point'],
  [/address already in use/i, 'the port for the remote control is taken'],
  [
    /fusermount3?: (?:[^:]+: )?(?:permission|[a-z ]*not permitted)|operation not permitted/i,
    'this user may not mount here',
  ],
  [/unknown flag/i, 'the installed rclone does not know an option that it is started with'],
];

/** rclone's message without our own way of keeping it from a NAS that is away, which would explain nothing. */
export function withoutDetour(message: string): string {
  return message.includes(NOWHERE) ? OFFLINE : message;
}

/** All that these messages are put into; translated on the dashboard. */
export const PLAIN_SENTENCES: readonly string[] = [
  ...new Set([OFFLINE, ...[...OF_CALLS, ...OF_MOUNTS].map(([, sentence]) => sentence)]),
];

const MAX_DETAIL = 200;

/** A plain sentence for what a mount's rclone says, followed by its own last message. `lines`: the newest last. */
export function inPlainWords(lines: readonly string[], otherwise: string): string {
  return understood(lines, otherwise, OF_MOUNTS).sentence;
}

/** The same of a call to the remote, as an error that says what it shows about it. */
export function remoteFailure(
  lines: readonly string[],
  otherwise: string,
  options?: ErrorOptions,
): RemoteFailure {
  return failureOf(understood(lines, otherwise, OF_CALLS), options);
}

/** The same of an rclone that has not mounted what it should. */
export function mountFailure(lines: readonly string[], otherwise: string): RemoteFailure {
  return failureOf(understood(lines, otherwise, OF_MOUNTS));
}

function failureOf({ sentence, remote }: Understood, options?: ErrorOptions): RemoteFailure {
  return Object.assign(new Error(sentence, options), { remote });
}

/** The error for a remote that did not answer in time. */
export function silence(cause: unknown): RemoteFailure {
  return Object.assign(new Error('the remote does not answer in time', { cause }), {
    remote: 'silent' as const,
  });
}

/** What a call of the remote control has failed of, which the signal may have ended. */
export function callFailure(error: Error, signal: AbortSignal): RemoteFailure {
  if (error.name === 'TimeoutError' && !signal.aborted) return silence(error);
  if (signal.aborted)
    return signal.reason instanceof Error && signal.reason.name === 'TimeoutError' ? silence(error) : error;
  return remoteFailure([error.message], 'the remote refuses it', { cause: error });
}

interface Understood {
  readonly sentence: string;
  readonly remote?: RemoteEvidence | undefined;
}

function understood(lines: readonly string[], otherwise: string, sentences: Sentences): Understood {
  const said = lines.map((line) => withoutDetour(bare(line))).filter((line) => line !== '');
  for (const line of [...said].reverse()) {
    if (line === OFFLINE) return { sentence: OFFLINE, remote: 'silent' };
    const found = sentences.find(([pattern]) => pattern.test(line));
    if (found) return { sentence: `${found[1]} (${shortened(line)})`, remote: found[2] };
  }
  const last = said.at(-1);
  return { sentence: last === undefined ? otherwise : `${otherwise} (${shortened(last)})` };
}

/** The message without time, level and the remote's name. */
function bare(line: string): string {
  return line
    .replace(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\s+/, '')
    .replace(/^(ERROR|NOTICE|CRITICAL|INFO|DEBUG|FATAL)\s*:\s*/, '')
    .replace(/^Failed to [^:]+: /, '')
    .trim();
}

function shortened(line: string): string {
  const clean = masked(line.replaceAll(/\s+/g, ' '));
  return clean.length > MAX_DETAIL ? `${clean.slice(0, MAX_DETAIL)}…` : clean;
}

export const UNMOUNTED = 'the share was unmounted by somebody else';

/** Why a mount's process has ended, in plain words. */
export function endReason(exit: Awaited<ManagedProcess['exited']>, lines: readonly string[]): string {
  if (exit.signal === 'SIGKILL')
    return "the mount's process was killed (by hand, or by the system when memory ran out)";
  if (exit.signal !== null) return `the mount's process was ended by ${exit.signal}`;
  if (exit.code === 0) return UNMOUNTED;
  return inPlainWords(
    lines,
    `the mount's process ended${exit.code === null ? '' : ` with exit code ${exit.code}`}`,
  );
}
