/**
 * The process of a stranger's plugin, or of several that share it. A message says which; from then on the daemon
 * calls its functions, and hears every second what its status, its shares' status and its metrics read. Whatever
 * the plugin does, it does to this process alone.
 */
import { ownPlaceOf, pluginIn } from '../../blame.ts';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { getPriority, setPriority } from 'node:os';
import type { Logger } from '../../../contract/platform.ts';
import type { Plugin } from '../../../contract/plugin.ts';
import { importModule } from '../../../platform/load-module.ts';
import { stackOf } from '../../../platform/log/thrown.ts';
import { manifestProblem, pickPlugin, thirdPartyProblem, versioned } from '../../discovery/manifest.ts';
import type { Declared } from '../../discovery/manifest.ts';
import { actAs, actorNow } from '../../instance/acting-plugin.ts';
import { dryRun } from '../../instance/instance.ts';
import { ownFolder } from '../process/confinement.ts';
import type { Declaration } from '../carried/declaration.ts';
import { keepsFilesIn, told } from './denied.ts';
import { LoadedPlugin } from './loaded-plugin.ts';
import type { Heard } from './loaded-plugin.ts';
import { placeOf } from './place.ts';
import { OpenThings } from './open-things.ts';
import { FrameReader, frame, sendTo } from '../protocol.ts';
import type { Begin, FromRunner, Said, ToRunner } from '../protocol.ts';
import { runnerLog } from './runner-log.ts';

const CHANNEL = 3;
/** Below everything that serves somebody. */
const NICENESS = 10;
/** Deep enough to find the plugin that ends the process from far down in a library. */
const DEEPEST_STACK = 100;
const leave = process.exit.bind(process);

// Where the daemon runs with more, a process without capabilities may not go back.
setPriority(Math.max(getPriority(), NICENESS));
const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
const reader = new FrameReader();
const openThings = new OpenThings();
/** One plugin; `loaded` once its module is there. */
interface Place {
  loaded?: LoadedPlugin;
}
const places = new Map<number, Place>();
/** Name and folder of all that were loaded; what has gone may have left something behind. */
const folders: [name: string, folder: string][] = [];
/** The seat of a plugin that has the process for itself; those that share one begin at 1. */
const OWN = 0;
let isEnding = false;

/** False where the daemon has not read what was said before: this is lost then. */
function say(message: FromRunner): boolean {
  return sendTo(channel, message);
}

/** By the stack, else by whose work it was; undefined where nobody knows. */
function guiltyOf(stack: string): string | undefined {
  const alone = places.has(OWN) ? folders[0]?.[0] : undefined;
  return pluginIn(stack, folders) ?? actorNow()?.name ?? alone;
}

/** At once, for there may be no later. */
function lastWords(reason: string, by: string | undefined): void {
  if (isEnding) return;
  isEnding = true;
  try {
    writeSync(
      CHANNEL,
      frame({ is: 'broke', reason: reason.slice(0, 1_000), ...(by !== undefined && { by }) }),
    );
  } catch {
    // The daemon does not read: it will find out by the exit code.
  }
}

/** In the plugin's own code where there is such a place; another's says nothing to its author. */
function whereIn(error: unknown, plugin: string | undefined): string {
  const own = folders.flatMap(([name, folder]) => (name === plugin ? folder : []));
  return ownPlaceOf(error, own) || placeOf(error);
}

function breakOff(what: string, error: unknown): void {
  const by = guiltyOf(stackOf(error));
  lastWords(`${what}: ${told(error)}${whereIn(error, by)}`, by);
  leave(1);
}

/** A SyntaxError tells its place only when nobody catches it. */
function endBy(error: SyntaxError): Promise<never> {
  isEnding = true;
  process.removeAllListeners('uncaughtException');
  process.nextTick(() => {
    throw error;
  });
  return new Promise(() => undefined);
}

async function pluginOf({ entry, name, declared, task }: Begin, hasNeighbours: boolean): Promise<Plugin> {
  const actor = hasNeighbours ? { name } : undefined;
  const namespace = await actAs(actor, () => importModule(entry)).catch((error: unknown) => {
    // Later there may be others here.
    if (error instanceof SyntaxError && task === 'declare') return endBy(error);
    throw new Error(`it cannot be loaded: ${told(error)}${whereIn(error, name)}`, { cause: undefined });
  });
  const manifest = declared as Declared;
  const plugin = versioned(pickPlugin(namespace), manifest.version);
  const problem = manifestProblem(plugin, name) ?? thirdPartyProblem(plugin as Plugin, manifest);
  if (problem !== undefined) throw new Error(problem);
  return plugin as Plugin;
}

/** What only this needs is loaded here: most of a runner's time it is of no use. */
async function declared(plugin: Plugin, log: Logger): Promise<Declaration> {
  const { declarationOf } = await import('../carried/declaration.ts');
  const ledger = dryRun(plugin, log, true);
  const declaration = declarationOf(plugin, ledger);
  if (ledger.routes.length > 0) await (await import('./route-server.ts')).routeServer(ledger.routes);
  return declaration;
}

async function begin(message: Begin, seat: number): Promise<void> {
  // In a process of its own whatever happens is its doing.
  const hasNeighbours = seat !== OWN;
  const tell = (said: Said): boolean => say({ ...said, seat });
  const log = runnerLog(message.logLevel, tell);
  keepsFilesIn(ownFolder({ stateDir: message.paths.stateDir, name: message.name }));
  folders.push([message.name, message.folder]);
  const place: Place = {};
  places.set(seat, place);
  try {
    const plugin = await pluginOf(message, hasNeighbours);
    if (message.task === 'declare') {
      return void tell({ is: 'declared', declaration: await declared(plugin, log) });
    }
    if (message.task === 'migrate')
      return void tell({ is: 'migrated', table: await plugin.config?.migrate?.({ ...message.config }) });
    // It was told to go while it was imported.
    if (places.get(seat) !== place) return;
    place.loaded = new LoadedPlugin(plugin, message, { log, say: tell, hasNeighbours });
    await place.loaded.activate();
    tell({ is: 'up' });
  } catch (error) {
    const reason = `${told(error)}${ownPlaceOf(error, [message.folder])}`;
    tell({ is: message.task === 'run' ? 'failed' : 'refused', reason });
  }
}

async function leaveSeat(seat: number, reason: string): Promise<void> {
  const loaded = places.get(seat)?.loaded;
  places.delete(seat);
  await loaded?.dispose(reason);
  say({ is: 'left', seat });
}

async function end(reason: string): Promise<void> {
  isEnding = true;
  await Promise.all([...places.values()].map(async ({ loaded }) => loaded?.dispose(reason)));
  await tellLeftOpen();
  leave(0);
}

/** It ends with the process; whoever wrote the plugin should know. Of several, nobody can tell whose it was. */
async function tellLeftOpen(): Promise<void> {
  const [seat, ...others] = places.keys();
  if (seat === undefined || others.length > 0) return;
  const open = await openThings.left();
  const message =
    'the plugin has left something open, which ends with its process; its release must close it';
  if (open.length > 0) say({ is: 'log', seat, level: 'warn', message, fields: { open: open.join(', ') } });
}

function take(message: ToRunner): void {
  if (message.is === 'ping') return void say({ is: 'pong' });
  if (message.is === 'end') return void end(message.reason);
  takeFor(message.seat ?? OWN, message);
}

function takeFor(seat: number, message: Heard | Extract<ToRunner, { is: 'begin' | 'leave' }>): void {
  if (message.is === 'begin') void begin(message, seat);
  else if (message.is === 'leave') void leaveSeat(seat, message.reason);
  else places.get(seat)?.loaded?.take(message);
}

process.on('uncaughtException', (error) => breakOff('it broke off with an error that nobody caught', error));
process.on('unhandledRejection', (error) =>
  breakOff('it broke off with a rejection that nobody caught', error),
);
process.on('exit', (code) => {
  Error.stackTraceLimit = DEEPEST_STACK;
  lastWords(`it called process.exit(${code})`, guiltyOf(String(new Error('exit').stack)));
});
// Ends with the daemon's end of the socket, even without the shell beside it.
channel.on('close', () => leave(0));
channel.on('error', () => leave(0));
channel.on('data', (chunk: Buffer) => {
  for (const message of reader.read(chunk)) take(message as ToRunner);
});
