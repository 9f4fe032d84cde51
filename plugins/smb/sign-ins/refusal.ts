/** What smbd writes of a sign-in that it refuses: a line of JSON (`log level = auth_json_audit:2`). */
import { isIP } from 'node:net';
import type { RefusedAttempt } from 'mountkeeper';

/** smbd's own begin so. Quotes that a client sends are escaped, so it can begin none like it. */
const BEGIN = '{"timestamp"';
/** Characters. smbd breaks a line near 1,000, which no names of users reach, and ends what it breaks with " +>". */
const LONGEST = 4_096;
/** By the clock of this machine, which may have been set back. */
const SHORT_MS = 1_000;
/** Quotes within are escaped, so none of a client's own texts begins like it. */
const ACCOUNT = /"clientAccount": ("(?:[^"\\]|\\.){0,300}")/;
/** Let in, where there are guests. */
const NO_SUCH_USER = 'NT_STATUS_NO_SUCH_USER';

interface Said {
  readonly timestamp: string;
  readonly status: string;
  readonly remoteAddress: string;
  readonly clientAccount: string | null;
  /** Clients try first with the name of the system's user and no password, and nobody can come in by that. */
  readonly hasPassword: boolean;
}

export interface SmbdSays {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Names that nobody has are let in as guests. */
  readonly hasGuests: boolean;
}

/** A line that tells of a sign-in, and of no trouble of smbd's. */
export function isAudit(line: string): boolean {
  return line.startsWith(BEGIN);
}

/** Undefined for every other line. Never throws: part of it is what a stranger sent. */
export function refusalIn(line: string, { now, hasGuests }: SmbdSays): RefusedAttempt | undefined {
  if (!isAudit(line)) return undefined;
  const said = (line.length <= LONGEST ? whole(line) : undefined) ?? beginning(line.slice(0, LONGEST));
  if (!said || !said.hasPassword || isLetIn(said, hasGuests)) return undefined;
  const at = Date.parse(said.timestamp);
  return {
    address: addressOf(said.remoteAddress),
    user: said.clientAccount === '' ? null : said.clientAccount,
    isNobody: said.status === NO_SUCH_USER,
    at: at >= 0 && at <= now + SHORT_MS ? at : now,
  };
}

function isLetIn({ status }: Said, hasGuests: boolean): boolean {
  return status === 'NT_STATUS_OK' || (hasGuests && status === NO_SUCH_USER);
}

function whole(line: string): Said | undefined {
  try {
    const { timestamp, type, Authentication: said } = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (type !== 'Authentication' || typeof said !== 'object' || said === null) return undefined;
    const { status, remoteAddress, clientAccount, passwordType } = said as Readonly<Record<string, unknown>>;
    return {
      timestamp: textOf(timestamp),
      status: textOf(status),
      remoteAddress: textOf(remoteAddress),
      clientAccount: typeof clientAccount === 'string' ? clientAccount : null,
      hasPassword: passwordType !== 'No-Password',
    };
  } catch {
    // Broken off, or mixed with what another process of smbd wrote: its beginning may be whole.
    return undefined;
  }
}

/** smbd writes all this but the name before the first text that a client chooses. */
function beginning(line: string): Said | undefined {
  if (textAfter(line, '"type": "') !== 'Authentication') return undefined;
  const status = textAfter(line, '"status": "');
  const remoteAddress = textAfter(line, '"remoteAddress": "');
  if (status === undefined || remoteAddress === undefined) return undefined;
  const timestamp = textAfter(line, '"timestamp": "') ?? '';
  return {
    timestamp,
    status,
    remoteAddress,
    clientAccount: unquoted(ACCOUNT.exec(line)?.[1]),
    hasPassword: true,
  };
}

function textAfter(line: string, mark: string): string | undefined {
  const from = line.indexOf(mark) + mark.length;
  const end = from < mark.length ? -1 : line.indexOf('"', from);
  return end === -1 ? undefined : line.slice(from, end);
}

function unquoted(text = 'null'): string | null {
  try {
    return JSON.parse(text) as string | null;
  } catch {
    // Mixed with what another process of smbd wrote.
    return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** `ipv4:192.0.2.1:50000`, `ipv6:2001:db8::1:50000`. */
function addressOf(text: string): string {
  const [, address = ''] = /^ipv[46]:(.{1,60}):\d{1,5}$/.exec(text) ?? [];
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return isIP(plain) === 0 ? 'unknown' : plain;
}
