/**
 * Which files of a share are proved to be on the remote, each with a hash of its content there. A file that
 * lies in the upper folder is compared with the remote's; one that does not lies on the remote alone.
 */
import { join } from 'node:path';
import type { RemoteHash, RemoteVersion } from 'mountkeeper';
import { below, isAtOrInside, nameOf, parentOf } from '../compare/paths.ts';
import { DETOUR_PREFIX } from '../compare/plan-types.ts';
import { identityOf, isSameFile } from '../compare/records.ts';
import type { Identity } from '../compare/records.ts';
import type { Waiting } from '../transfer/queue.ts';
import { ask, localStats } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';
import { filesAt } from './listing.ts';
import { withLocalFile } from './local-file.ts';
import type { ProofOptions } from './proof-jobs.ts';
import type { Listing, UnprovedFile } from './listing.ts';
import { hasSameContent, isSameThing } from './versions.ts';

/** Files that are compared at the same time. */
const AT_ONCE = 4;
/** Hashes that a media hash list has elements for; with any other, or a malformed one, a file is read back. */
const LISTED: Readonly<Record<string, RegExp>> = { md5: /^[0-9a-f]{32}$/, sha1: /^[0-9a-f]{40}$/ };
/** What an upload that has not ended leaves beside its target, under any name that it may have. */
const UNFINISHED = /\.[0-9a-f]{1,8}\.mk[0-9a-f]{8}$|^\.mountkeeper-upload-/;

export interface ProvedFile {
  /** Relative to the receipt's root. */
  readonly path: string;
  readonly bytes: number;
  /** Milliseconds since the epoch; undefined where the remote stores no times. */
  readonly modifiedMs?: number;
  readonly hash: RemoteHash;
  /** When the remote's content was hashed, in milliseconds since the epoch. */
  readonly provedAt: number;
  /** False: it lies on the remote alone, and there was nothing here to compare it with. */
  readonly isCompared: boolean;
}

export interface Receipt {
  /** The folder in the share that paths of proved files are relative to. */
  readonly root: string;
  /** Ordered by path. */
  readonly proved: readonly ProvedFile[];
  readonly unproved: readonly UnprovedFile[];
}

export type { UnprovedFile } from './listing.ts';

export interface ReceiptTools extends StepTools, ProofOptions {
  /** After a new look that has seen everything. */
  readonly waiting: () => Promise<readonly Waiting[]>;
}

/** A file that was uploaded and still lies in the upper folder. */
interface LocalFile {
  readonly place: string;
  readonly identity: Identity;
  /** Others' version is at this path of the remote; where the one from here is. */
  readonly copy?: string;
}

/**
 * Rejects with a plain sentence when the remote does not answer, or when there is nothing at the path. What
 * waits to be uploaded, at the beginning or at the end, is not proved.
 */
export async function receiptOf(path: string, tools: ReceiptTools): Promise<Receipt> {
  if (!isXmlText(path))
    throw new Error(
      'Its name holds a character that a media hash list cannot hold; ask for a folder above it.',
    );
  const waitingFirst = about(path, await tools.waiting());
  const found = await filesAt(path, tools);
  if (found === undefined && waitingFirst.length === 0) throw new Error(nothingAt(path));
  const { files, unlisted } = found ?? NOTHING_LISTED;
  const local = await uploadedFiles(path, tools);
  const root = files.has(path) ? parentOf(path) : path;
  const places = [...new Set([...files, ...local.keys()])]
    .filter((place) => !isCovered(place, waitingFirst))
    .sort();
  const { proved, unproved } = await proveAll(places, root, { tools, local });
  const waiting = new Map(
    [...waitingFirst, ...about(path, await tools.waiting())].map((one) => [one.path, one]),
  );
  const waits = [...waiting.values()];
  const isStill = (one: string): boolean => !isCovered(one, waits);
  return {
    root,
    proved: proved.filter((file) => isStill(below(root, file.path))),
    unproved: [
      ...waits.map((one) => ({ path: one.path, reason: one.reason })),
      ...[...unlisted, ...unproved].filter((file) => isStill(file.path)),
    ].sort((a, b) => (a.path < b.path ? -1 : 1)),
  };
}

const NOTHING_LISTED: Listing = { files: new Set(), unlisted: [] };

function nothingAt(path: string): string {
  return path === ''
    ? 'The remote does not have the folder of the share.'
    : `There is no '${path}' on the remote.`;
}

/** What waits at the path, in it, or in a folder around it. */
export function about(path: string, waiting: readonly Waiting[]): Waiting[] {
  return waiting.filter(({ spots }) =>
    spots.some((spot) => isAtOrInside(spot, path) || isAtOrInside(path, spot)),
  );
}

function isCovered(place: string, waiting: readonly Waiting[]): boolean {
  return waiting.some(({ spots }) => spots.some((spot) => isAtOrInside(place, spot)));
}

/** By the path on the remote. */
async function uploadedFiles(path: string, tools: ReceiptTools): Promise<Map<string, LocalFile>> {
  const found = new Map<string, LocalFile>();
  for (const [place, { proved, copy }] of tools.records.places) {
    const target = copy?.path ?? place;
    if (proved === undefined || !isAtOrInside(target, path)) continue;
    const stats = await localStats(tools.layer, place);
    if (stats === undefined || !isSameFile(proved, identityOf(stats))) continue;
    found.set(target, { place, identity: proved });
    if (copy !== undefined && isAtOrInside(place, path))
      found.set(place, { place, identity: proved, copy: copy.path });
  }
  return found;
}

interface Work {
  readonly tools: ReceiptTools;
  readonly local: ReadonlyMap<string, LocalFile>;
}

async function proveAll(
  places: readonly string[],
  root: string,
  { tools, local }: Work,
): Promise<{ readonly proved: ProvedFile[]; readonly unproved: UnprovedFile[] }> {
  const results = new Map<string, ProvedFile | string>();
  const failed = new AbortController();
  const signal = AbortSignal.any([tools.signal, failed.signal]);
  const left = places.values();
  const work = async (): Promise<void> => {
    for (const place of left) {
      signal.throwIfAborted();
      results.set(place, await proveOne(place, root, { tools: { ...tools, signal }, local }));
      tools.onProgress(results.size, places.length);
    }
  };
  tools.onProgress(0, places.length);
  const workers = Array.from({ length: AT_ONCE }, work);
  try {
    await Promise.all(workers);
  } finally {
    failed.abort();
    await Promise.allSettled(workers);
  }
  const proved: ProvedFile[] = [];
  const unproved: UnprovedFile[] = [];
  for (const place of places) {
    const result = results.get(place)!;
    if (typeof result === 'string') unproved.push({ path: place, reason: result });
    else proved.push(result);
  }
  return { proved, unproved };
}

/** The reason when it is not proved. Rejects when the remote does not answer: no other would be, either. */
async function proveOne(place: string, root: string, { tools, local }: Work): Promise<ProvedFile | string> {
  const path = root === '' ? place : place.slice(root.length + 1);
  if (isUnfinished(nameOf(place))) return 'It is what an unfinished upload or move has left on the remote.';
  if (!isXmlText(path)) return 'Its name holds a character that a media hash list cannot hold.';
  try {
    return await compared(place, path, { tools, local });
  } catch (error) {
    tools.signal.throwIfAborted();
    if ((error as { readonly remote?: string }).remote === 'silent') throw error;
    return `It could not be read: ${(error as Error).message}`;
  }
}

async function compared(place: string, path: string, { tools, local }: Work): Promise<ProvedFile | string> {
  const own = local.get(place);
  if (own?.copy !== undefined) return `Others' version is at this path; the one from here is at ${own.copy}.`;
  const now = await ask(tools, place, true);
  if (now.kind !== 'file') return 'The remote does not have it.';
  const { bytes, modifiedMs } = now.version;
  if (bytes < 0) return 'The remote does not tell its size.';
  const hash = await hashOf(place, now.version, tools);
  if (hash === undefined) return 'It changed on the remote while it was read.';
  const difference = own && (await differenceFrom(own, { ...now.version, hash }, tools));
  if (difference !== undefined) return difference;
  const hasTime = Number.isFinite(tools.remote.precisionMs) && isTime(modifiedMs);
  const proof = { hash, provedAt: tools.clock.now(), isCompared: own !== undefined };
  return { path, bytes, ...(hasTime && { modifiedMs }), ...proof };
}

/** What speaks against the file that lies here being the remote's. */
async function differenceFrom(
  { place, identity }: LocalFile,
  version: RemoteVersion,
  { layer, signal }: ReceiptTools,
): Promise<string | undefined> {
  const isSame = await withLocalFile(join(layer.upper, place), identity, (handle) =>
    hasSameContent(handle, version, signal),
  );
  const after = await localStats(layer, place);
  if (after === undefined || !isSameFile(identity, identityOf(after)))
    return 'It was changed here while it was compared.';
  return isSame === true ? undefined : 'The remote has other content than what was written here.';
}

/** The remote's own hash where it has one, else that of its content, read back; undefined when it changed. */
async function hashOf(
  place: string,
  version: RemoteVersion,
  tools: ReceiptTools,
): Promise<RemoteHash | undefined> {
  const { hash } = version;
  const value = hash?.value.toLowerCase() ?? '';
  if (hash !== undefined && LISTED[hash.kind]?.test(value) === true) return { ...hash, value };
  const read = await tools.remote.readBack(place, tools);
  const { hash: _, ...before } = version;
  const after = await ask(tools, place);
  return isSameThing(after, { kind: 'file', version: before }, tools.remote.precisionMs) ? read : undefined;
}

function isUnfinished(name: string): boolean {
  return name.startsWith(DETOUR_PREFIX) || UNFINISHED.test(name);
}

/** A remote may tell times that no calendar has. */
function isTime(ms: number): boolean {
  return !Number.isNaN(new Date(ms).getTime());
}

/** Whether XML 1.0 can hold it. */
function isXmlText(text: string): boolean {
  return /^[\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]*$/u.test(text);
}
