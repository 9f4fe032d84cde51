/**
 * Talks to a running daemon: over its command socket, or with the address and password of the configuration
 * file.
 */
import { access, constants, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'smol-toml';
import type { Secret, Secrets } from '../contract/config.ts';
import { peekConfig } from '../config/peek.ts';
import { createClock } from '../platform/clock.ts';
import { UsageFault } from './arguments.ts';
import { askOverSocket } from './command-socket.ts';
import type { Answer, Call } from './command-socket.ts';
import { spokenScheme } from './spoken-scheme.ts';

/** Nothing listens at the daemon's address, or it does not answer. */
export class NoDaemon extends Error {}

const ANSWER_TIMEOUT_MS = 30_000;
/** The configuration may hold the password as a hash, which cannot be sent. */
const HASH = /^scrypt\$\d/;
/** Codes of a certificate that is refused: of another name, ended, or signed by somebody unknown. */
const NOT_TRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)/;

export interface ClientOptions {
  readonly configFile: string;
  /**
   * True when the user named the file: if it cannot be read, that is an error, unless `url` says where the
   * daemon is.
   */
  readonly isConfigNamed?: boolean;
  readonly url: string | undefined;
  /** True: what is sent is for the socket, or the address that the user named, alone. */
  readonly isPrivate?: boolean | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
}

export interface Target {
  readonly url: string;
  readonly authorization: string | undefined;
}

/**
 * The daemon's address and credentials: from `--url` and MOUNTKEEPER_PASSWORD first, then the file, then
 * the defaults. The file's password is sent only to an address that the user has named: on the usual
 * address any local user could listen while the daemon is down.
 */
export async function findTarget(options: ClientOptions): Promise<Target> {
  const web = await readWebSection(
    options.configFile,
    options.isConfigNamed === true && options.url === undefined,
  );
  const named = namedAddress(options);
  const scheme = web.tls === undefined ? 'http' : 'https';
  const url = parseUrl(named ?? `${scheme}://${reachable(web.listen)}:${web.port}`);
  const username = url.username === '' ? web.username : decodeURIComponent(url.username);
  const own = named === undefined ? '' : clear(web.password, options);
  const password = decodeURIComponent(url.password) || (options.env.MOUNTKEEPER_PASSWORD ?? own);
  const credentials = Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
  return {
    url: `${url.origin}${url.pathname}`.replace(/(?<!\/)\/+$/, ''),
    authorization: password === '' ? undefined : `Basic ${credentials}`,
  };
}

function namedAddress({ url, env }: ClientOptions): string | undefined {
  return url ?? env.MOUNTKEEPER_URL;
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new UsageFault(`'${text}' is not the address of a daemon; write it like http://127.0.0.1:8090`);
  return url;
}

/**
 * Sends a request: over the daemon's socket where this user may open it, without a password; over TCP when
 * an address was named, and for users who may not open the socket. When the socket is missing, no daemon is
 * running, and whoever holds its port now is somebody else.
 */
export async function request(options: ClientOptions, call: Call): Promise<Answer> {
  const { isConfigNamed, signal } = options;
  if (namedAddress(options) !== undefined) return requestOverTcp(options, call);
  await readWebSection(options.configFile, isConfigNamed === true);
  const { stateDir } = await peekConfig(options.configFile);
  const answer = await askOverSocket(stateDir, call, createClock().deadline(ANSWER_TIMEOUT_MS, signal)).catch(
    (cause: unknown) => {
      signal.throwIfAborted();
      throw new NoDaemon(
        `the daemon does not answer over its socket in ${stateDir}: ${(cause as Error).message}`,
        { cause },
      );
    },
  );
  if (answer === 'absent')
    throw new NoDaemon(
      `no daemon answers over a socket of its own in ${stateDir}; is it running? Name another with --config or --url`,
    );
  if (answer !== 'forbidden') return answer;
  if (options.isPrivate === true)
    throw new Error(
      'what would be sent holds passwords, and this user may not open the socket of the daemon; run this as root or ' +
        "as the daemon's user, or name the daemon's address with --url",
    );
  return requestOverTcp(options, call);
}

async function requestOverTcp(options: ClientOptions, call: Call): Promise<Answer> {
  const target = await spokenTarget(options);
  const response = await send(target, options.signal, call);
  if (response.status === 401)
    throw new Error(
      `the daemon ${target.authorization ? 'refuses the password' : 'asks for a password'}; ${passwordAdvice(options)}`,
    );
  return { status: response.status, body: await response.text() };
}

/** A file that this user may not read may say that TLS is spoken: the server is asked then. */
async function spokenTarget(options: ClientOptions): Promise<Target> {
  const target = await findTarget(options);
  if (namedAddress(options) !== undefined || (await isReadable(options.configFile))) return target;
  const scheme = await spokenScheme(
    new URL(target.url),
    createClock().deadline(ANSWER_TIMEOUT_MS, options.signal),
  );
  return { ...target, url: target.url.replace(/^http:/, `${scheme}:`) };
}

function isReadable(file: string): Promise<boolean> {
  return access(file, constants.R_OK).then(
    () => true,
    () => false,
  );
}

function passwordAdvice(options: ClientOptions): string {
  const given = 'give it in the environment variable MOUNTKEEPER_PASSWORD, or';
  if (namedAddress(options) !== undefined) return `${given} name the configuration with --config`;
  return `${given} run this as root or as the user the daemon runs as, who need none`;
}

async function send(target: Target, signal: AbortSignal, call: Call): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json, text/html;q=0.9' };
  if (target.authorization) headers.authorization = target.authorization;
  if (call.body !== undefined) headers['content-type'] = 'application/json';
  try {
    return await fetch(`${target.url}${call.path}`, {
      method: call.method,
      headers,
      signal: createClock().deadline(ANSWER_TIMEOUT_MS, signal),
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    });
  } catch (cause) {
    signal.throwIfAborted();
    const { code = '' } = ((cause as Error).cause ?? {}) as NodeJS.ErrnoException;
    if (NOT_TRUSTED.test(code))
      throw new Error(
        `the certificate that ${target.url} shows is not trusted here (${code}); nothing was sent. ` +
          'Name a file with it, or with who signed it, in the environment variable NODE_EXTRA_CA_CERTS',
        { cause },
      );
    throw new NoDaemon(
      `no daemon answers at ${target.url}; is it running? Name another with --url or --config`,
      { cause },
    );
  }
}

async function readWebSection(
  file: string,
  isRequired: boolean,
): Promise<{ listen: string; port: number; username: string; password: Secret; tls?: unknown }> {
  const defaults = { listen: '127.0.0.1', port: 8090, username: 'admin', password: '' };
  try {
    const { web } = parse(await readFile(file, 'utf8')) as { web?: Partial<typeof defaults> };
    return { ...defaults, ...web };
  } catch (cause) {
    // The default file may be missing or unreadable for this user; a file that was asked for may not.
    if (isRequired) {
      const { code, message } = cause as NodeJS.ErrnoException;
      const reason =
        code === 'ENOENT'
          ? 'there is no such file'
          : code === 'EACCES'
            ? 'permission denied; --url and MOUNTKEEPER_PASSWORD do without it'
            : message.split('\n')[0];
      throw new Error(`${file} cannot be read as a configuration: ${reason}`, { cause });
    }
    return defaults;
  }
}

function reachable(listen: string): string {
  if (listen === '0.0.0.0') return '127.0.0.1';
  if (listen === '::') return '[::1]';
  return listen.includes(':') ? `[${listen}]` : listen;
}

/**
 * The clear password; empty when it cannot be read or is a hash. The daemon's answer then says what it
 * needs.
 */
function clear(password: Secret, options: ClientOptions): string {
  const isFile = typeof password === 'object' && 'file' in password;
  try {
    const text = options.secrets.resolve(
      isFile ? { file: resolve(dirname(options.configFile), password.file) } : password,
    );
    return HASH.test(text) ? '' : text;
  } catch {
    // The daemon is asked without one then, and says that it wants one.
    return '';
  }
}
