import { droppingTo } from './rights.ts';

/** As it was where the machine cannot drop anything: what reads a share is needed. */
const LESSENED = `
drop=
unset PWD OLDPWD
until [ "$1" = -- ]; do
  drop="$drop $1"
  shift
done
shift
setpriv $drop true </dev/null >/dev/null 2>&1 && exec setpriv $drop "$@"
exec "$@"`;

/**
 * What starts the command, without a question before, as a helper that reads what comes from elsewhere: root with these
 * capabilities alone (in lower case and without `cap_`), and its own process id. Beside a daemon that is not root, the
 * command itself.
 */
export function lessened(
  command: string,
  args: readonly string[],
  capabilities: readonly string[] = [],
): readonly [command: string, args: readonly string[]] {
  if (process.geteuid?.() !== 0) return [command, args];
  return ['/bin/sh', ['-c', LESSENED, 'sh', ...droppingTo({ capabilities }), '--', command, ...args]];
}
