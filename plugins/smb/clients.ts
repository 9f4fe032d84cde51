/** Who is connected, for people; and the end of one connection. */
import { Joi, tcpClients } from 'mountkeeper';
import type { ClientSession, Clock, TcpClient } from 'mountkeeper';
import { GUEST } from './users/accounts.ts';
import { isAlive, tellSession } from './sessions.ts';
import type { SambaTools } from './samba.ts';

const STATUS_MS = 5_000;
const MOST_OUTPUT_BYTES = 8 * 1_048_576;
const END_MS = 3_000;
const LOOK_MS = 40;

export interface ClientTools extends SambaTools {
  readonly clock: Clock;
  readonly port: number;
  /** Those that are shown: smbd has some of its own beside them. */
  readonly shares: ReadonlySet<string>;
}

interface Login {
  readonly session_id: string;
  readonly server_id: { readonly pid: string };
  readonly username: string;
  readonly remote_machine: string;
  /** `ipv4:192.0.2.1:50000`, `ipv6:2001:db8::1:50000`. */
  readonly hostname: string;
}

interface Entered {
  readonly service: string;
  readonly session_id: string;
  readonly connected_at: string;
}

const SERVER = Joi.object({
  pid: Joi.string()
    .pattern(/^[0-9]{1,10}$/)
    .required(),
})
  .unknown()
  .required();
const TEXT = Joi.string().allow('').required();
const LOGINS = Joi.object({
  sessions: Joi.object()
    .pattern(
      Joi.string(),
      Joi.object({
        session_id: Joi.string()
          .pattern(/^[0-9]{1,20}$/)
          .required(),
        server_id: SERVER,
        username: TEXT,
        remote_machine: TEXT,
        hostname: TEXT,
      }).unknown(),
    )
    .required(),
})
  .unknown()
  .required();
const ENTERED = Joi.object({
  tcons: Joi.object()
    .pattern(Joi.string(), Joi.object({ service: TEXT, session_id: TEXT, connected_at: TEXT }).unknown())
    .required(),
})
  .unknown()
  .required();

/** Rejects with a sentence when the server does not say. */
export async function clientsOf(tools: ClientTools): Promise<readonly ClientSession[]> {
  const [logins, entered, connections] = await Promise.all([
    askForLogins(tools),
    ask<{ tcons: Record<string, Entered> }>(tools, '-S', ENTERED).then(({ tcons }) => Object.values(tcons)),
    // Without it, how much was sent is not known.
    tcpClients(tools.processes, tools.port).catch(() => []),
  ]);
  const connectionOf = new Map(connections.map((one) => [`${one.address} ${one.port}`, one]));
  return logins.map((login) => {
    const own = entered.filter(
      ({ session_id: session, service }) => session === login.session_id && tools.shares.has(service),
    );
    return sessionOf(login, own, connectionOf.get(placeOf(login)));
  });
}

function sessionOf(
  login: Login,
  entered: readonly Entered[],
  connection: TcpClient | undefined,
): ClientSession {
  const times = entered.map(({ connected_at: at }) => Date.parse(at)).filter((at) => at >= 0);
  return {
    id: idOf(login),
    user: ['', GUEST].includes(login.username) ? null : login.username,
    address: login.remote_machine,
    shares: [...new Set(entered.map(({ service }) => service))].sort(),
    // Samba tells when a share was entered, and not when its client logged in.
    since: times.length === 0 ? null : Math.min(...times),
    lastAt: null,
    bytesToClient: connection?.bytesToClient ?? null,
    bytesFromClient: connection?.bytesFromClient ?? null,
  };
}

/** Numbers of processes are given out again; together with the session's own it is never another one's. */
function idOf({ server_id: { pid }, session_id: session }: Login): string {
  return `${pid}.${session}`;
}

function placeOf({ hostname }: Login): string {
  const [, address = '', port = ''] = /^ipv[46]:(.*):(\d+)$/.exec(hostname) ?? [];
  return `${address.replace(/^::ffff:(?=\d+\.)/, '')} ${port}`;
}

/**
 * Ends the connection that the session is on, and so whoever else has logged in on the same one. Resolves once its
 * process is gone; with false when there was none. Rejects with a sentence.
 */
export async function disconnectClient(id: string, tools: ClientTools): Promise<boolean> {
  const login = (await askForLogins(tools)).find((one) => idOf(one) === id);
  if (!login) return false;
  const { pid } = login.server_id;
  await tellSession(tools, pid, 'shutdown');
  const end = tools.clock.monotonic() + END_MS;
  while (isAlive(Number(pid))) {
    if (tools.clock.monotonic() >= end)
      throw new Error(`smbd's process ${pid} was told to end and has not ended within ${END_MS / 1_000} s`);
    await tools.clock.sleep(LOOK_MS);
  }
  return true;
}

async function askForLogins(tools: ClientTools): Promise<readonly Login[]> {
  const { sessions } = await ask<{ sessions: Record<string, Login> }>(tools, '-b', LOGINS);
  return Object.values(sessions);
}

async function ask<T>(
  { processes, paths, env }: ClientTools,
  what: '-b' | '-S',
  schema: ReturnType<typeof Joi.object>,
): Promise<T> {
  const { code, stdout, stderr } = await processes.run({
    command: 'smbstatus',
    args: ['-s', paths.conf, what, '--json'],
    env,
    timeoutMs: STATUS_MS,
    maxOutputBytes: MOST_OUTPUT_BYTES,
  });
  if (/json/i.test(stderr) && code !== 0)
    throw new Error('this Samba cannot tell its sessions: it is older than 4.17, or built without JSON');
  if (code !== 0) throw new Error(`smbstatus ended with ${code}: ${stderr.trim().slice(0, 200)}`);
  const { value, error } = schema.validate(parsed(stdout));
  if (error) throw new Error(`smbstatus tells of sessions what cannot be read: ${error.message}`);
  return value as T;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema says so.
    return undefined;
  }
}
