/**
 * What a runner is kept from, by its plugin's permissions: Node's permission model for files, processes, threads
 * and native code; a network of its own, in which there is nobody, for one that may not use ours. What it asks of
 * the daemon is judged there. Node's model is a seat belt, by its own documentation: it does not hold code that
 * is out to break it, and knows no sockets. What holds that is its user (`own-user.ts`); where it has the daemon's, the
 * command socket stays in its reach.
 */
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import type { ServiceUser } from '../../../contract/platform.ts';
import type { Permission } from '../../../contract/services.ts';
import { howToAsk } from '../../permissions.ts';
import type { Declaration } from '../carried/declaration.ts';

export interface Confinement {
  readonly permissions: readonly Permission[];
  /** Where the plugin's copy lies. */
  readonly folder: string;
  readonly name: string;
  /** The plugin's entry, in its copy. */
  readonly entry: string;
  readonly stateDir: string;
  readonly packageDir: string;
  /** Names of all that share the process; left out where it is the plugin's own. */
  readonly company?: readonly string[];
  /** Whom the process runs as; left out: as the daemon's user, without capabilities. */
  readonly user?: ServiceUser | undefined;
}

const has = (flag: string): boolean => process.allowedNodeEnvironmentFlags.has(flag);

/** Where a plugin's documents are, and whatever else it keeps. */
export function ownFolder({ stateDir, name }: Pick<Confinement, 'stateDir' | 'name'>): string {
  return path.join(stateDir, 'store', name);
}

/** Arguments for the runner's Node. */
export function nodeFlags(confinement: Confinement): readonly string[] {
  const { permissions } = confinement;
  const may = (permission: Permission): boolean => permissions.includes(permission);
  const isAllowed = (flag: string, permission: Permission): readonly string[] =>
    may(permission) && has(flag) ? [flag] : [];
  return [
    // Large libraries are loaded there when they are used; see `imports` in package.json.
    '--conditions=mountkeeper-runner',
    has('--permission') ? '--permission' : '--experimental-permission',
    // Node says with every start that its model is new, and that what was allowed is allowed.
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=SecurityWarning',
    ...fileFlags(confinement, may('files'), may('own-files')),
    ...isAllowed('--allow-child-process', 'processes'),
    ...(needsWorker(confinement) ? ['--allow-worker'] : isAllowed('--allow-worker', 'workers')),
    ...isAllowed('--allow-addons', 'addons'),
    // From Node 25 on; before, the model knows no network.
    ...isAllowed('--allow-net', 'network'),
  ];
}

/** Plugins for which it is the same can share a process. */
export function companyOf(confinement: Pick<Confinement, 'permissions' | 'entry' | 'stateDir'>): string {
  const { permissions, stateDir } = confinement;
  return JSON.stringify([[...permissions].sort(), needsWorker(confinement), stateDir]);
}

/** An older Node reads TypeScript by hooks that have a thread; what a thread may is no more than the rest. */
function needsWorker({ entry }: Pick<Confinement, 'entry'>): boolean {
  return /\.m?ts$/.test(entry) && (process.features as { typescript?: unknown }).typescript !== 'strip';
}

function fileFlags(confinement: Confinement, mayAll: boolean, mayOwn: boolean): readonly string[] {
  if (mayAll) return ['--allow-fs-read=*', '--allow-fs-write=*'];
  const { stateDir, name: alone, company = [alone] } = confinement;
  const own = mayOwn ? company.map((name) => ownFolder({ stateDir, name })) : [];
  return [
    ...places([...readable(confinement), ...own]).map((one) => `--allow-fs-read=${one}`),
    ...places(own).map((one) => `--allow-fs-write=${one}`),
  ];
}

/**
 * The copy, the link to `mountkeeper` beside it, and that with its packages: npm puts them above it, too. Who shares
 * a process may read all copies: those that come later cannot be named when it is started.
 */
function readable({ folder, packageDir, company }: Confinement): readonly string[] {
  const modules = foldersAbove(packageDir).map((one) =>
    path.basename(one) === 'node_modules' ? one : path.join(one, 'node_modules'),
  );
  const host = [path.join(packageDir, 'package.json'), path.join(packageDir, 'dist'), ...modules];
  const copies = path.dirname(folder);
  return [...(company ? [copies] : [folder, path.join(copies, 'node_modules')]), ...host];
}

function foldersAbove(at: string): readonly string[] {
  const above = path.dirname(at);
  return above === at ? [at] : [at, ...foldersAbove(above)];
}

/**
 * Those that are there, each with where its links lead, and none that is within another: Node takes a folder for all
 * in it, and breaks off where one is said twice.
 */
function places(files: readonly string[]): readonly string[] {
  const there = new Set(files.filter((one) => existsSync(one)).flatMap((one) => [one, realpathSync(one)]));
  return [...there].filter((one) => ![...there].some((other) => one.startsWith(`${other}/`)));
}

/** Of the daemon's own status: what tells of shares. */
const TELLING_SERVICES: ReadonlySet<string> = new Set(['status', 'shares', 'config']);
/** What each hook needs; all others tell of shares. */
const NEEDED_BY_HOOK: Readonly<Record<string, Permission | undefined>> = {
  collectNotices: undefined,
  beforeMount: 'hold-mounts',
  // What limits the bandwidth does what the command `bwlimit` does.
  collectShareLimits: 'send-commands',
  resolveBandwidth: 'send-commands',
};

/** Why what it declares goes beyond what it may; undefined where it does not. */
export function beyondPermissions(
  declaration: Declaration,
  permissions: readonly Permission[],
): string | undefined {
  const lacking = neededBy(declaration).find(([, needed]) => !permissions.includes(needed));
  if (!lacking) return undefined;
  const [what, needed] = lacking;
  return `it uses ${what} without the permission "${needed}"; ${howToAsk(needed)}`;
}

function neededBy({
  requires,
  taps,
  commands,
  shareStatus,
  webhookFormats,
  listeners,
}: Declaration): readonly (readonly [what: string, needed: Permission])[] {
  const services = requires.filter((one) => TELLING_SERVICES.has(one));
  const reading = [
    ...services.map((one) => `the service "${one}"`),
    ...commands.map((one) => `ctx.handle("${one}")`),
    ...(shareStatus.length > 0 ? ['ctx.shareStatus()'] : []),
    ...listeners.map(({ event }) => `ctx.on("${event}")`),
    ...(webhookFormats.length > 0 ? ['ctx.webhookFormat()'] : []),
  ];
  const hooks = taps.flatMap(({ hook }) => {
    const needed = Object.hasOwn(NEEDED_BY_HOOK, hook) ? NEEDED_BY_HOOK[hook] : 'read-status';
    return needed ? [[`ctx.tap("${hook}")`, needed] as const] : [];
  });
  return [...reading.map((what) => [what, 'read-status'] as const), ...hooks];
}
