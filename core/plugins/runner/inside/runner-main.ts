/**
 * The process of one stranger's plugin. Its first message says which; from then on the daemon calls its
 * functions, and hears every second what its status, its shares' status and its metrics read. Whatever the
 * plugin does, it does to this process alone.
 */
import { placeIn } from '../../blame.ts';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { setPriority } from 'node:os';
import { inspect } from 'node:util';
import type { Logger } from '../../../contract/platform.ts';
import type { Plugin } from '../../../contract/plugin.ts';
import { importModule } from '../../../platform/load-module.ts';
import { manifestProblem, pickPlugin, thirdPartyProblem } from '../../discovery/manifest.ts';
import type { Declared } from '../../discovery/manifest.ts';
import { dryRun } from '../../instance/instance.ts';
import { ownFolder } from '../process/confinement.ts';
import type { Declaration } from '../carried/declaration.ts';
import { keepsFilesIn, told } from './denied.ts';
import { LoadedPlugin } from './loaded-plugin.ts';
import { FrameReader, frame, sendTo } from '../protocol.ts';
import type { Begin, FromRunner, ToRunner } from '../protocol.ts';
import { runnerLog } from './runner-log.ts';

const CHANNEL = 3;
/** Below everything that serves somebody. */
const NICENESS = 10;
const leave = process.exit.bind(process);

setPriority(NICENESS);
const channel = new Socket({ fd: CHANNEL, readable: true, writable: true });
const reader = new FrameReader();
let loaded: LoadedPlugin | undefined;
let isEnding = false;

function say(message: FromRunner): void {
  sendTo(channel, message);
}

/** At once, for there may be no later. */
function lastWords(reason: string): void {
  if (isEnding) return;
  isEnding = true;
  try {
    writeSync(CHANNEL, frame({ is: 'broke', reason: reason.slice(0, 1_000) }));
  } catch {
    // The daemon does not read: it will find out by the exit code.
  }
}

function breakOff(what: string, error: unknown): void {
  lastWords(`${what}: ${error instanceof Error ? told(error) : inspect(error)}${placeOf(error)}`);
  leave(1);
}

/** The first place outside Node, as ` (/x/y.js:1:2)`. */
function placeOf(error: unknown): string {
  const lines = error instanceof Error ? (error.stack ?? '').split('\n') : [];
  const frameLine = lines.find((line) => /^ {4}at /.test(line) && !line.includes('node:'));
  const place = frameLine === undefined ? '' : placeIn(frameLine).replace('file://', '').replace(/\)$/, '');
  return place.startsWith('/') ? ` (${place})` : '';
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

async function pluginOf({ entry, name, declared }: Begin): Promise<Plugin> {
  const namespace = await importModule(entry).catch((error: unknown) => {
    if (error instanceof SyntaxError) return endBy(error);
    throw new Error(`it cannot be loaded: ${told(error)}${placeOf(error)}`, { cause: undefined });
  });
  const plugin = pickPlugin(namespace);
  const problem = manifestProblem(plugin, name) ?? thirdPartyProblem(plugin as Plugin, declared as Declared);
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

async function begin(message: Begin): Promise<void> {
  const log = runnerLog(message.logLevel, say);
  keepsFilesIn(ownFolder({ stateDir: message.paths.stateDir, name: message.name }));
  try {
    const plugin = await pluginOf(message);
    if (message.task === 'declare') {
      return say({ is: 'declared', declaration: await declared(plugin, log) });
    }
    loaded = new LoadedPlugin(plugin, message, { log, say });
    await loaded.activate();
    say({ is: 'up' });
  } catch (error) {
    say({ is: message.task === 'declare' ? 'refused' : 'failed', reason: told(error) });
  }
}

async function end(reason: string): Promise<void> {
  isEnding = true;
  await loaded?.dispose(reason);
  leave(0);
}

function take(message: ToRunner): void {
  if (message.is === 'begin') void begin(message);
  else if (message.is === 'ping') say({ is: 'pong' });
  else if (message.is === 'end') void end(message.reason);
  else loaded?.take(message);
}

process.on('uncaughtException', (error) => breakOff('it broke off with an error that nobody caught', error));
process.on('unhandledRejection', (error) =>
  breakOff('it broke off with a rejection that nobody caught', error),
);
process.on('exit', (code) => lastWords(`it called process.exit(${code})`));
// Ends with the daemon's end of the socket, even without the shell beside it.
channel.on('close', () => leave(0));
channel.on('error', () => leave(0));
channel.on('data', (chunk: Buffer) => {
  for (const message of reader.read(chunk)) take(message as ToRunner);
});
