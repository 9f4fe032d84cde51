/** `mountkeeper run`: the daemon in the foreground, controlled by signals. */
import { access, constants } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import type { Arguments } from './arguments.ts';
import { EXIT } from './exit-codes.ts';
import { adviceOn, problemLines } from './check-command.ts';
import { openOffline } from './offline.ts';
import { formatBytes } from '../sdk/units.ts';
import { ConfigRefused, Daemon } from '../daemon.ts';
import type { DaemonEnd } from '../daemon.ts';
import { peekConfig } from '../config/peek.ts';
import { createClock } from '../platform/clock.ts';
import { keepCompiled } from '../platform/compile-cache.ts';
import { endProcess, UncaughtErrors } from '../plugins/uncaught.ts';

/** Most files of a share that are listed by name when they could not be uploaded in time. */
const NAMED_FILES = 20;
/** By then its shares are mounted, and V8 has thrown nothing away of what the start ran. */
const STARTED_MS = 10_000;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const;

export async function runDaemon(args: Arguments, configFile: string): Promise<number> {
  const early = rememberSignals();
  const uncaught = new UncaughtErrors();
  uncaught.install();
  let daemon: Daemon;
  try {
    await refuseBeforeState(configFile);
    daemon = await Daemon.start({
      configFile,
      json: args.json,
      safeMode: args.safeMode,
      env: process.env,
      onPlugins: (judge) => uncaught.judgedBy(judge),
    });
  } catch (error) {
    if (!(error instanceof ConfigRefused)) throw error;
    for (const line of [...problemLines(configFile, error.check), ...adviceOn(configFile)])
      process.stderr.write(`${line}\n`);
    return EXIT.config;
  }
  // Thousands of short connections took 65 to 100 MB, and 27 MB with this flag: it keeps V8's space for
  // young objects from growing.
  setFlagsFromString('--semi-space-growth-factor=1');
  createClock().after(STARTED_MS, keepCompiled);
  const ended = untilEnd(daemon, uncaught);
  early.handOn();
  const code = exitCode(await ended);
  endInAnyCase(code);
  return code;
}

const LEFT_OPEN_MS = 1_000;

/** Handles that plugins left open would keep a process alive that does nothing and ignores signals. */
function endInAnyCase(code: number): void {
  createClock().after(LEFT_OPEN_MS, () => {
    process.stderr.write(
      'mountkeeper: plugins have left open: ' +
        `${[...new Set(process.getActiveResourcesInfo())].join(', ')}; the process ends anyway\n`,
    );
    endProcess(code);
  });
}

/**
 * Until the daemon handles signals itself, the default action would end the process: on the SIGHUP of a log
 * rotation, and with a status that looks like success.
 */
function rememberSignals(): { handOn(): void } {
  const came = new Set<NodeJS.Signals>();
  const remember = (signal: NodeJS.Signals): void => {
    if (came.has(signal) && isStop(signal)) endProcess(EXIT.failure);
    came.add(signal);
  };
  for (const signal of SIGNALS) process.on(signal, remember);
  return {
    handOn: () => {
      for (const signal of SIGNALS) process.off(signal, remember);
      for (const signal of came) process.emit(signal, signal);
    },
  };
}

function isStop(signal: NodeJS.Signals): boolean {
  return signal === 'SIGTERM' || signal === 'SIGINT';
}

/**
 * Checks the document first: a refused document creates no state folder, and a state folder that cannot be
 * created does not hide what is wrong with the document.
 */
async function refuseBeforeState(configFile: string): Promise<void> {
  const { stateDir } = await peekConfig(configFile);
  if (
    await access(stateDir, constants.W_OK).then(
      () => true,
      () => false,
    )
  )
    return;
  const offline = await openOffline(configFile, { isDaemon: true });
  try {
    const check = await offline.config.loadFile();
    if (!check.ok) throw new ConfigRefused(check);
  } finally {
    await offline.close();
  }
}

/**
 * SIGTERM and SIGINT drain and stop, a second one ends at once; SIGHUP reloads the file; SIGUSR2 hands
 * over.
 */
function untilEnd(
  daemon: Daemon,
  uncaught: UncaughtErrors,
): Promise<DaemonEnd & { readonly crashed?: true }> {
  return new Promise((resolve) => {
    const crashed = (error: unknown): void => {
      daemon.log.fatal(
        { err: error },
        'the daemon did not end cleanly; the next one takes over what it left',
      );
      resolve({
        reason: 'handed over',
        left: [],
        isKnown: false,
        crashed: true,
      });
    };
    const end = (ending: Promise<DaemonEnd>): void => void ending.then(resolve, crashed);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(daemon.stop()));
    process.on('SIGUSR2', () => end(daemon.handOver()));
    process.on('SIGHUP', () => {
      void daemon
        .readAgain()
        .catch((error: unknown) => daemon.log.error({ err: error }, 'configuration file not reloaded'));
    });
    // What failed is unknown, so the state is unknown as well: the next daemon adopts the mounts, and no
    // user notices.
    uncaught.onFatal = (error) => {
      daemon.log.fatal(
        { err: error },
        'unexpected error, the daemon ends and leaves its mounts to the next one',
      );
      void daemon.handOver().then((ended) => resolve({ ...ended, crashed: true }), crashed);
    };
  });
}

/** Says what is left, and returns the status that the process ends with. */
export function exitCode(end: DaemonEnd & { readonly crashed?: true }): number {
  for (const { share, count, bytes, paths } of end.left) {
    process.stderr.write(
      `${count} files (${formatBytes(bytes)}) of share '${share}' are not on the NAS yet; ` +
        `they are kept and go up at the next start:\n`,
    );
    for (const path of paths.slice(0, NAMED_FILES)) process.stderr.write(`  ${path}\n`);
    if (count > NAMED_FILES) process.stderr.write(`  … and ${count - NAMED_FILES} more\n`);
  }
  if (end.crashed) return EXIT.failure;
  if (!end.isKnown)
    process.stderr.write(
      'the cache could not be read in full: files that are not on the NAS yet may wait in it, more than are listed; ' +
        'what waits goes up at the next start, once the cache can be read\n',
    );
  return end.left.length > 0 || !end.isKnown ? EXIT.timeout : EXIT.ok;
}
