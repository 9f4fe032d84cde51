import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addressProblem, leastRights, portProblem, untilAnswered } from 'mountkeeper';
import type {
  ClientSession,
  Clock,
  ManagedProcess,
  Processes,
  ProcessRights,
  ProcessSpec,
  RefusedSignIns,
} from 'mountkeeper';
import { formerSpools } from './folders.ts';
import { ask } from './health-check.ts';
import type { Address } from './health-check.ts';
import type {
  KeptContent,
  ProxyReport,
  ProxySession,
  ProxyState,
  SystemAnswer,
  SystemQuestion,
} from '../proxy/state.ts';
import type { WebdavPaths } from './paths.ts';

export const PROCESS_KEY = 'webdav/front';
export const GRACE_MS = 2_000;
const ORIGIN = { section: 'webdav' } as const;
const READY_MS = 10_000;
/**
 * Limits V8's space for young objects, in MiB. Without it V8 takes 50 MiB more when thousands of
 * connections come and go.
 */
const HEAP = '--max-semi-space-size=2';
const PROXY = fileURLToPath(new URL('../proxy/', import.meta.url));
/** What Node.js reads beside the modules. */
const PACKAGE = fileURLToPath(new URL('../../../../package.json', import.meta.url));
const SDK = fileURLToPath(new URL('.', import.meta.resolve('mountkeeper/sdk')));

/** Ports below it need a capability. */
const FIRST_FREE_PORT = 1_024;

export interface ProxyOptions {
  readonly paths: WebdavPaths;
  readonly address: Address;
  readonly rights: ProcessRights | undefined;
  readonly spool: string;
}

/** What the proxy is left with. It faces the network: nothing that root may, but its port where that is a low one. */
export async function proxyRights(
  { port }: Pick<Address, 'port'>,
  processes: Pick<Processes, 'run'>,
): Promise<ProcessRights | undefined> {
  return leastRights({
    processes,
    capabilities: port < FIRST_FREE_PORT ? ['net_bind_service'] : [],
    files: [process.execPath, PACKAGE, ...(await programFiles())],
  });
}

/** A running proxy is kept until its own files, its user or its folders have changed. */
export async function proxySpec({ paths, address, rights, spool }: ProxyOptions): Promise<ProcessSpec> {
  const { host, port, isOurs } = address;
  const scheme = isOurs ? 'https' : 'http';
  const hash = createHash('sha256').update(
    JSON.stringify([process.execPath, HEAP, paths.root, host, port, scheme, rights, spool]),
  );
  for (const file of await programFiles()) hash.update(await readFile(file));
  const folders = [
    paths.own,
    paths.journal,
    paths.sockets,
    spool,
    ...(await formerSpools(paths, spool, rights?.user)),
  ];
  return {
    key: PROCESS_KEY,
    command: process.execPath,
    args: [join(PROXY, 'main.js'), paths.root, host, String(port), scheme, ...folders],
    env: { NODE_OPTIONS: HEAP },
    fingerprint: hash.digest('hex').slice(0, 32),
    rights,
    folders,
  };
}

async function programFiles(): Promise<readonly string[]> {
  return [...(await scriptsIn(PROXY)), ...(await scriptsIn(SDK))];
}

async function scriptsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return names
    .filter((name) => name.endsWith('.js'))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * Sends the wanted state to the proxy. Resolves once the proxy has let go of everything that is not in it.
 */
export async function tell(paths: WebdavPaths, state: ProxyState, signal: AbortSignal): Promise<ProxyReport> {
  const { status, text } = await ask(
    { socketPath: paths.control, method: 'PUT', path: '/' },
    JSON.stringify(state),
    signal,
  );
  if (status !== 200) throw new Error(`the WebDAV proxy did not accept its state: ${text.slice(0, 200)}`);
  return JSON.parse(text) as ProxyReport;
}

export async function report(paths: WebdavPaths, signal: AbortSignal): Promise<ProxyReport> {
  const { text } = await ask({ socketPath: paths.control, method: 'GET', path: '/' }, '', signal);
  return JSON.parse(text) as ProxyReport;
}

export async function sessions(paths: WebdavPaths, signal: AbortSignal): Promise<readonly ClientSession[]> {
  const { text } = await ask({ socketPath: paths.control, method: 'GET', path: '/sessions' }, '', signal);
  return (JSON.parse(text) as readonly ProxySession[]).map(
    ({ id, user, share, address, since, lastAt, toClient, fromClient }) => ({
      id,
      user,
      address,
      shares: [share],
      since,
      lastAt,
      bytesToClient: toClient,
      bytesFromClient: fromClient,
    }),
  );
}

/** Sign-ins that the proxy has refused since it was asked; undefined where there were none. */
export async function takeRefused(
  paths: WebdavPaths,
  signal: AbortSignal,
): Promise<RefusedSignIns | undefined> {
  const { text } = await ask({ socketPath: paths.control, method: 'POST', path: '/refused' }, '', signal);
  return (JSON.parse(text) as RefusedSignIns | null) ?? undefined;
}

/** What waits of uploads that did not come to their end. Rejects where something else has come, see `fetchSystem`. */
export async function fetchKept(paths: WebdavPaths, signal: AbortSignal): Promise<readonly KeptContent[]> {
  const { text } = await ask({ socketPath: paths.control, method: 'GET', path: '/kept' }, '', signal);
  const kept: unknown = JSON.parse(text);
  if (!Array.isArray(kept) || !kept.every(isKept))
    throw new Error('the WebDAV proxy answers in no known form');
  return kept;
}

function isKept(value: unknown): value is KeptContent {
  const { share, path, file } = (value ?? {}) as Partial<KeptContent>;
  return [share, path, file].every((text) => typeof text === 'string');
}

/**
 * Waits for the first. None: nothing came in time. Rejects where something else than questions has come: the proxy
 * faces the network, and may have been broken into.
 */
export async function fetchSystem(
  paths: WebdavPaths,
  signal: AbortSignal,
): Promise<readonly SystemQuestion[]> {
  const { text } = await ask({ socketPath: paths.control, method: 'POST', path: '/system' }, '', signal);
  const questions: unknown = JSON.parse(text);
  if (!Array.isArray(questions) || !questions.every(isQuestion))
    throw new Error('the WebDAV proxy asks in no known form');
  return questions;
}

function isQuestion(value: unknown): value is SystemQuestion {
  const { id, name, password, wasRight } = (value ?? {}) as Partial<SystemQuestion>;
  return [id, name, password].every((text) => typeof text === 'string') && typeof wasRight === 'boolean';
}

export async function answerSystem(
  paths: WebdavPaths,
  answer: SystemAnswer,
  signal: AbortSignal,
): Promise<void> {
  await ask({ socketPath: paths.control, method: 'POST', path: '/system' }, JSON.stringify(answer), signal);
}

/** Resolves with false when there is no such session. */
export async function endSession(paths: WebdavPaths, id: string, signal: AbortSignal): Promise<boolean> {
  const path = `/sessions/${encodeURIComponent(id)}`;
  const { text } = await ask({ socketPath: paths.control, method: 'DELETE', path }, '', signal);
  return text === 'true';
}

/** Resolves once the proxy can be controlled. */
export async function awaitReady(
  paths: WebdavPaths,
  process: ManagedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const ask = (deadline: AbortSignal): Promise<ProxyReport> => report(paths, deadline);
  if (!(await untilAnswered({ process, clock, signal, readyMs: READY_MS, ask }))) return;
  throw new Error(`the WebDAV front does not answer: ${(await process.tail(1))[0] ?? 'no reason given'}`);
}

/** Why the address cannot be used; undefined when it can. */
export async function listenProblem(address: Address): Promise<string | undefined> {
  return addressProblem(address, ORIGIN) ?? portProblem(address, ORIGIN);
}
