import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { unlessAborted } from 'mountkeeper';
import type { NasAddress } from 'mountkeeper';

/** Resolves with undefined when the NAS is there, else with the reason in rclone's wording. Never rejects. */
export type Dial = (signal: AbortSignal) => Promise<string | undefined>;

export const TIMED_OUT = 'i/o timeout';
const MOST_ADDRESSES = 8;
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  EHOSTDOWN: 'host is down',
  ETIMEDOUT: TIMED_OUT,
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'no such host',
  ECONNRESET: 'connection reset',
};

/** One lookup at a time: each blocks one of the process's few threads for as long as the resolver takes. */
let resolving: Promise<unknown> | undefined;

export type Resolver = (host: string) => Promise<readonly { readonly address: string }[]>;

const askSystem: Resolver = (host) => lookup(host, { all: true });

async function resolve(host: string, ask: Resolver): Promise<readonly string[] | undefined> {
  if (resolving) return undefined;
  const answer = ask(host).then(
    (found) => found.slice(0, MOST_ADDRESSES).map(({ address }) => address),
    () => undefined,
  );
  resolving = answer.finally(() => (resolving = undefined));
  return answer;
}

/** Dials a NAS without rclone, on a connection that is closed at once. */
export function createDial({ host, port, manner }: NasAddress, ask: Resolver = askSystem): Dial {
  let known = isIP(host) ? ([host] as readonly string[]) : undefined;
  return async (signal) => {
    const isName = !isIP(host);
    // A name may lead elsewhere when the NAS returns; the former addresses are used until the resolver has
    // answered.
    const answer = isName ? resolve(host, ask).then((addresses) => (known = addresses ?? known)) : undefined;
    // When the signal aborts first, no address is known, and the caller is told so.
    if (answer && known === undefined) await unlessAborted(signal, answer).catch(() => undefined);
    return known === undefined ? WORDS['ENOTFOUND'] : meetAny(known, { port, manner, signal });
  };
}

type Meeting = Pick<NasAddress, 'port' | 'manner'> & { readonly signal: AbortSignal };

/**
 * Like rclone, dials every address of a name, of both families; one that answers is enough. The last
 * failure is the most informative.
 */
async function meetAny(
  addresses: readonly string[],
  { signal, ...rest }: Meeting,
): Promise<string | undefined> {
  const found = new AbortController();
  let reason: string | undefined;
  await Promise.all(
    addresses.map(async (ip) => {
      const missing = await meet(ip, { ...rest, signal: AbortSignal.any([signal, found.signal]) });
      if (missing === undefined) found.abort();
      reason = missing;
    }),
  );
  return found.signal.aborted ? undefined : reason;
}

function meet(ip: string, { port, manner, signal }: Meeting): Promise<string | undefined> {
  if (signal.aborted) return Promise.resolve(TIMED_OUT);
  return new Promise((settle) => {
    const socket = connect({ host: ip, port });
    const end = (reason: string | undefined): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      settle(reason);
    };
    const onAbort = (): void => end(TIMED_OUT);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', (error: NodeJS.ErrnoException) => end(WORDS[error.code ?? ''] ?? error.message));
    socket.once('connect', () => {
      if (manner === 'accepts') end(undefined);
      if (manner === 'answers')
        socket.write(`HEAD / HTTP/1.0\r\nHost: ${isIP(ip) === 6 ? `[${ip}]` : ip}\r\n\r\n`);
    });
    socket.once('data', () => end(undefined));
    socket.once('end', () => end('connection reset'));
  });
}
