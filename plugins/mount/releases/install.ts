/**
 * Brings an official build of rclone into the store: from a mirror, or from files. What is put there is what
 * rclone's key has signed, for the version asked for and for this machine, and it has run once.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Mirror } from './mirror.ts';
import { PROGRAM } from './chosen.ts';
import type { ReleaseKey } from './signed-checksums.ts';
import { verifiedChecksums } from './signed-checksums.ts';
import type { ReleaseStore } from './store.ts';
import { unpackProgram } from './unpack.ts';
import { FLOOR, isOlder, parseVersion, versionIn, versionName } from './versions.ts';
import type { Version } from './versions.ts';

export interface InstallTools {
  readonly store: ReleaseStore;
  readonly key: ReleaseKey;
  /** First line of `rclone version` of that program; rejects where it does not run. */
  readonly askVersion: (program: string) => Promise<string>;
  readonly progress: (text: string) => void;
  readonly signal: AbortSignal;
}

const MOST_TEXT_BYTES = 1_048_576;
const MOST_ARCHIVE_BYTES = 536_870_912;
const MIB = 1_048_576;

/** rclone's name for this machine; undefined where it is built for it under none that is known here. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: '386',
  arm64: 'arm64',
  arm: 'arm-v7',
};

/** `rclone-v1.75.0-linux-amd64`: of the archive without its ending, and of the folder in it. */
export function buildName(version: Version, arch: string = process.arch): string {
  return `rclone-${versionName(version)}-linux-${ARCHITECTURES[arch] ?? arch}`;
}

const ARCHIVE = /^rclone-(v\d+\.\d+\.\d+)-linux-[a-z0-9-]+\.zip$/;

/** The newest one that the mirror knows. It says so without a signature: see `refuseReplay`. */
export async function newestAt(mirror: Mirror): Promise<Version> {
  const said = await mirror.text('version.txt', MOST_TEXT_BYTES);
  const version = versionIn(said);
  if (!version) throw new Error('the mirror does not say which rclone is the newest: name a version');
  return version;
}

/**
 * Who holds the mirror, or the line to it, could name an old release with a known hole as the newest: its
 * checksums are signed, too. Throws a sentence where it is older than what is known.
 */
export function refuseReplay(offered: Version, known: readonly Version[]): void {
  const newer = known.find((one) => isOlder(offered, one));
  if (!newer) return;
  throw new Error(
    `the mirror offers rclone ${versionName(offered)} as the newest, and ${versionName(newer)} is known here: ` +
      `it is behind, or somebody plays an old release. Name the version to install it all the same`,
  );
}

export async function installFromMirror(
  version: Version,
  mirror: Mirror,
  tools: InstallTools,
): Promise<void> {
  refuseTooOld(version);
  const { store, key, progress } = tools;
  const name = `${buildName(version)}.zip`;
  const sums = await mirror.text(`${versionName(version)}/SHA256SUMS`, MOST_TEXT_BYTES);
  const expected = sumOf(name, await verifiedChecksums(sums, key));
  await store.withDraft(async (draft) => {
    const archive = join(draft, name);
    const target = await open(archive, 'wx', 0o600);
    let sum: string;
    try {
      sum = await mirror.file(`${versionName(version)}/${name}`, target, {
        mostBytes: MOST_ARCHIVE_BYTES,
        onProgress: (bytes, total) =>
          progress(`${name}: ${shown(bytes)}${total ? ` of ${shown(total)}` : ''}`),
      });
    } finally {
      await target.close();
    }
    refuseForged(name, sum, expected);
    await take({ archive, draft, version }, tools);
    await rm(archive);
    await store.putInPlace(draft, version);
  });
}

/** `archive` keeps the name that rclone gave it; `sums` is the SHA256SUMS of its release. */
export async function installFromFile(archive: string, sums: string, tools: InstallTools): Promise<Version> {
  const name = basename(archive);
  const version = parseVersion(ARCHIVE.exec(name)?.[1] ?? '');
  if (!version || name !== `${buildName(version)}.zip`)
    throw new Error(
      `${name} is not an archive of rclone for this machine, or was renamed: ` +
        `rclone's own name is ${buildName(version ?? FLOOR).replace(/v[\d.]+/, 'vVERSION')}.zip`,
    );
  refuseTooOld(version);
  const signed = await readFile(sums, 'utf8').catch((error: Error) => {
    throw new Error(
      `the checksums of the release cannot be read (${error.message}): ` +
        `put its SHA256SUMS into ${dirname(archive)}, or name it after the archive`,
      { cause: error },
    );
  });
  const expected = sumOf(name, await verifiedChecksums(signed, tools.key));
  await tools.store.withDraft(async (draft) => {
    // A copy of our own: nobody can change it between the check and the use.
    const copy = join(draft, name);
    refuseForged(name, await copied(archive, copy), expected);
    await take({ archive: copy, draft, version }, tools);
    await rm(copy);
    await tools.store.putInPlace(draft, version);
  });
  return version;
}

function refuseTooOld(version: Version): void {
  if (isOlder(version, FLOOR))
    throw new Error(
      `rclone ${versionName(version)} is too old: Mountkeeper needs ${versionName(FLOOR)} or later`,
    );
}

function sumOf(name: string, sums: ReadonlyMap<string, string>): string {
  const sum = sums.get(name);
  if (sum === undefined) throw new Error(`the signed checksums hold no ${name}: they are of another release`);
  return sum;
}

function refuseForged(name: string, sum: string, expected: string): void {
  if (sum !== expected)
    throw new Error(`${name} is not the one that rclone has signed: it is damaged, cut off or forged`);
}

interface Taken {
  readonly archive: string;
  readonly draft: string;
  readonly version: Version;
}

async function take({ archive, draft, version }: Taken, { askVersion, signal }: InstallTools): Promise<void> {
  signal.throwIfAborted();
  const program = join(draft, PROGRAM);
  await unpackProgram(archive, `${buildName(version)}/${PROGRAM}`, program);
  const said = await askVersion(program).catch((cause: Error) => {
    throw new Error(`the new rclone does not run here: ${cause.message}`, { cause });
  });
  const found = versionIn(said);
  if (!found || versionName(found) !== versionName(version))
    throw new Error(`the archive of rclone ${versionName(version)} holds another one, which says: ${said}`);
  signal.throwIfAborted();
}

/** Resolves with the SHA-256 of what was copied. */
async function copied(from: string, to: string): Promise<string> {
  const hash = createHash('sha256');
  const target = await open(to, 'wx', 0o600);
  try {
    for await (const piece of createReadStream(from)) {
      hash.update(piece as Buffer);
      await target.writeFile(piece as Buffer);
    }
  } finally {
    await target.close();
  }
  return hash.digest('hex');
}

function shown(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
