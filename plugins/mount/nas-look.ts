import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import type { NasAddress } from './nas-address.ts';

/** Undefined when somebody is there, else what is wrong, in rclone's words. */
export type NasLook = (signal: AbortSignal) => Promise<string | undefined>;

const TIMED_OUT = 'i/o timeout';
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused', EHOSTUNREACH: 'no route to host', ENETUNREACH: 'network is unreachable', EHOSTDOWN: 'host is down',
  ETIMEDOUT: TIMED_OUT, ENOTFOUND: 'no such host', EAI_AGAIN: 'no such host', ECONNRESET: 'connection reset',
};

/** One at a time for all: each holds one of the process's few threads for as long as the resolver takes. */
let resolving: Promise<unknown> | undefined;

async function resolve(host: string): Promise<string | undefined> {
  if (resolving) return undefined;
  const answer = lookup(host).then(({ address }) => address, () => undefined);
  resolving = answer.finally(() => (resolving = undefined));
  return answer;
}

/** Looks for a NAS from outside rclone: a connection of its own that ends at once. */
export function createNasLook({ host, port, manner }: NasAddress): NasLook {
  let known = isIP(host) ? host : undefined;
  return async (signal) => {
    const isName = !isIP(host);
    // A name may lead elsewhere when it is back; the address of before serves until the resolver has answered.
    const answer = isName ? resolve(host).then((address) => (known = address ?? known)) : undefined;
    if (known === undefined) await Promise.race([answer, whenAborted(signal)]);
    return known === undefined ? WORDS['ENOTFOUND'] : meet(known, { port, manner, signal });
  };
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((settle) => signal.addEventListener('abort', () => settle(), { once: true }));
}

function meet(ip: string, { port, manner, signal }: Pick<NasAddress, 'port' | 'manner'> & { readonly signal: AbortSignal }): Promise<string | undefined> {
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
      if (manner === 'answers') socket.write(`HEAD / HTTP/1.0\r\nHost: ${ip}\r\n\r\n`);
    });
    socket.once('data', () => end(undefined));
    socket.once('end', () => end('connection reset'));
  });
}
