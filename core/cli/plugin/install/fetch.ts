/** Has npm fetch a package with all that it depends on, into a project of its own. */
import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { withLimits } from './draft-size.ts';
import { runNpm } from './npm.ts';
import type { Npm } from './npm.ts';
import type { Source } from './source.ts';
import { readProject } from './store.ts';
import type { Fetched } from './store.ts';

/**
 * `shallow`: all that a package depends on lies in its own `node_modules`, so that its folder is whole.
 * `legacy-peer-deps`: peers come from the host, and the registry's `mountkeeper`, if it has one, is not asked
 * for.
 */
const INSTALL = [
  'install',
  '--omit=dev',
  '--install-strategy=shallow',
  '--legacy-peer-deps',
  '--install-links',
  '--package-lock',
  '--save',
];

/** Rejects with a sentence; the project is of no use then. */
export async function fetchPackage({ kind, spec }: Source, npm: Npm): Promise<Fetched> {
  const tarball = kind === 'folder' ? await packed(spec, npm) : undefined;
  await withLimits(npm, (limited) => runNpm([...INSTALL, '--', tarball ?? spec], spec, limited));
  if (tarball !== undefined) await rm(tarball, { force: true });
  const fetched = await readProject(npm.project);
  await takeFromOthers(fetched.folder);
  return fetched;
}

/** A folder is packed first: what is installed is what would be published, and has an integrity. */
async function packed(folder: string, npm: Npm): Promise<string> {
  const answer = await runNpm(['pack', '--pack-destination', npm.project, '--', folder], folder, npm);
  const [first] = Object.values((answer ?? {}) as Record<string, { filename?: unknown }>);
  if (typeof first?.filename !== 'string') throw new Error(`npm could not pack ${folder}`);
  return path.join(npm.project, first.filename);
}

const OTHERS_WRITE = 0o022;

/** A tarball's modes are its author's; nobody else may write what the daemon is to run. */
async function takeFromOthers(file: string): Promise<void> {
  const stats = await lstat(file);
  if (stats.isSymbolicLink()) return;
  if ((stats.mode & OTHERS_WRITE) !== 0) await chmod(file, stats.mode & 0o755);
  if (!stats.isDirectory()) return;
  for (const name of await readdir(file)) await takeFromOthers(path.join(file, name));
}

/**
 * How the registry says that this version was published: the kind of its provenance, '' where there is none;
 * undefined where it does not answer. Nothing of it is verified here.
 */
export async function provenanceOf(fetched: Fetched, npm: Npm): Promise<string | undefined> {
  const spec = `${fetched.package}@${fetched.version}`;
  try {
    const dist = (await runNpm(['view', '--', spec, 'dist'], spec, npm)) as {
      attestations?: { provenance?: { predicateType?: unknown } };
    };
    const { attestations } = dist ?? {};
    if (attestations === undefined) return '';
    const { predicateType } = attestations.provenance ?? {};
    return typeof predicateType === 'string' ? predicateType : 'attestations';
  } catch {
    // The package is there; what the registry says beside it is for information.
    npm.signal.throwIfAborted();
    return undefined;
  }
}

export interface FoundPackage {
  readonly name: string;
  readonly version: string;
  readonly description: string;
}

const KEYWORD = 'mountkeeper-plugin';

/** Packages of the registry that call themselves plugins. Rejects with a sentence. */
export async function searchPackages(words: readonly string[], npm: Npm): Promise<readonly FoundPackage[]> {
  const answer = await runNpm(['search', '--', `keywords:${KEYWORD}`, ...words], words.join(' '), npm);
  return (Array.isArray(answer) ? answer : [])
    .map((one: unknown) => (one ?? {}) as Record<string, unknown>)
    .filter(({ keywords }) => Array.isArray(keywords) && keywords.includes(KEYWORD))
    .map(({ name, version, description }) => ({
      name: String(name),
      version: String(version),
      description: typeof description === 'string' ? description : '',
    }));
}
