import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addressProblem, portProblem } from 'mountkeeper';
import type { Clock, ManagedProcess, ProcessSpec } from 'mountkeeper';
import { ask } from './health-check.ts';
import type { Address } from './health-check.ts';
import type { ProxyReport, ProxyState } from '../proxy/state.ts';
import type { Place } from './paths.ts';

export const PROCESS_KEY = 'webdav/front';
export const GRACE_MS = 2_000;
const ORIGIN = { section: 'webdav' } as const;
const READY_MS = 10_000;
const LOOK_MS = 30;
/**
 * MiB for what is young. Left alone, V8 takes 50 MiB more for it when thousands of connections come and go.
 */
const HEAP = '--max-semi-space-size=2';
const PROXY = fileURLToPath(new URL('../proxy/', import.meta.url));
const SDK = fileURLToPath(new URL('.', import.meta.resolve('mountkeeper/sdk')));

/** A proxy that runs goes on until what it is made of has changed. */
export async function proxySpec(place: Place, { host, port }: Address): Promise<ProcessSpec> {
  const hash = createHash('sha256').update(JSON.stringify([process.execPath, HEAP, place.root, host, port]));
  const files = [...(await scriptsIn(PROXY)), ...(await scriptsIn(SDK))];
  for (const file of files) hash.update(await readFile(file));
  return {
    key: PROCESS_KEY,
    command: process.execPath,
    args: [join(PROXY, 'main.js'), place.root, host, String(port)],
    env: { NODE_OPTIONS: HEAP },
    fingerprint: hash.digest('hex').slice(0, 32),
  };
}

async function scriptsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return names
    .filter((name) => name.endsWith('.js'))
    .sort()
    .map((name) => join(folder, name));
}

/** Tells the proxy what is wanted now. Resolves once it holds nothing of what is no more. */
export async function tell(place: Place, state: ProxyState, signal: AbortSignal): Promise<void> {
  const { status, text } = await ask(
    { socketPath: place.control, method: 'PUT', path: '/' },
    JSON.stringify(state),
    signal,
  );
  if (status !== 200) throw new Error(`the WebDAV front did not take its state: ${text.slice(0, 200)}`);
}

export async function report(place: Place, signal: AbortSignal): Promise<ProxyReport> {
  const { text } = await ask({ socketPath: place.control, method: 'GET', path: '/' }, '', signal);
  return JSON.parse(text) as ProxyReport;
}

/** Resolves once the proxy can be steered. */
export async function awaitReady(
  place: Place,
  process: ManagedProcess,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const deadline = clock.deadline(READY_MS, signal);
  while (process.isAlive() && !deadline.aborted) {
    const isThere = await report(place, clock.deadline(1_000, deadline)).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await clock.sleep(LOOK_MS, deadline).catch(() => undefined);
  }
  signal.throwIfAborted();
  throw new Error(`the WebDAV front does not answer: ${(await process.tail(1))[0] ?? 'no reason given'}`);
}

/** Why the address cannot be had; undefined when it can. */
export async function listenProblem(address: Address): Promise<string | undefined> {
  return addressProblem(address, ORIGIN) ?? portProblem(address, ORIGIN);
}
