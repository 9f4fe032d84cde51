/** `df` on another machine, by the system's own ssh: keys, hosts and ciphers are ssh's business. */
import { execFile } from 'node:child_process';

const ANSWER_MS = 15_000;

/** `{ freeBytes, totalBytes }`. Rejects with a sentence. */
export function askSpace({ host, port, user, key, known_hosts: knownHosts, path }, signal) {
  const options = [
    // Asks nobody anything, reads no one's own settings, and talks to no machine whose key is not known.
    ...['BatchMode=yes', 'StrictHostKeyChecking=yes', 'IdentitiesOnly=yes', 'ConnectTimeout=10'],
    ...(knownHosts === '' ? [] : [`UserKnownHostsFile=${quoted(knownHosts)}`]),
  ].flatMap((option) => ['-o', option]);
  const args = ['-F', 'none', ...options, '-i', key, '-p', String(port), '-l', user, '--', host];
  const command = `LC_ALL=C df -kP -- ${quotedForShell(path)}`;
  return new Promise((resolve, reject) => {
    execFile('ssh', [...args, command], { timeout: ANSWER_MS, signal }, (error, stdout, stderr) => {
      const space = spaceIn(stdout);
      if (space) resolve(space);
      else if (error?.killed) reject(new Error(`${host} did not answer within ${ANSWER_MS / 1_000} s`));
      else reject(new Error(lastLine(stderr) || error?.message || `df on ${host} gave no figures`));
    });
  });
}

/** The second line of `df -kP`: file system, 1024-byte blocks, used, available, percentage, mount point. */
export function spaceIn(text) {
  const [, line = ''] = text.split('\n');
  const [, total, , free] = /^.*?\s(\d+)\s+(\d+)\s+(\d+)\s+\d+%\s/.exec(line) ?? [];
  return total === undefined
    ? undefined
    : { freeBytes: Number(free) * 1_024, totalBytes: Number(total) * 1_024 };
}

/** The remote shell reads the command; nothing in a path may mean anything to it. */
function quotedForShell(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A path with blanks is two files to ssh. */
function quoted(path) {
  return `"${path}"`;
}

function lastLine(text) {
  return text.trim().split('\n').at(-1)?.trim();
}
