/** Asks PAM, by `pwauth`, a small program that was made for web servers: account and password on its input alone. */
import type { Processes } from 'mountkeeper';

export const PROGRAM = 'pwauth';
/** PAM makes whoever was wrong wait for 3 s at most; modules that ask a domain take theirs. */
const CHECK_MS = 12_000;
/** Above it, nothing was found out. */
const LAST_REFUSAL = 7;
/**
 * What PAM's modules do as root: read the shadow file where it is nobody's, note wrong tries in files of their users,
 * and tell the kernel's audit, without which all are refused.
 */
const CAPABILITIES = ['audit_write', 'chown', 'dac_override'];

export interface SystemPassword {
  readonly name: string;
  readonly password: string;
}

/** False, too, for an account that is locked or has run out. Rejects where it cannot be found out. */
export async function isRightPassword(
  { name, password }: SystemPassword,
  processes: Pick<Processes, 'run'>,
): Promise<boolean> {
  // Each in a line: what holds an end of line would be another account's.
  if (password === '' || /[\0-\x1f\x7f]/.test(name + password)) return false;
  const { code, signal } = await processes.run({
    command: PROGRAM,
    args: [],
    input: `${name}\n${password}\n`,
    timeoutMs: CHECK_MS,
    capabilities: CAPABILITIES,
  });
  if (code === 0) return true;
  if (code !== null && code <= LAST_REFUSAL) return false;
  throw new Error(`pwauth could not ask PAM (it ended with ${code ?? signal})`);
}
