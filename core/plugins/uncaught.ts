/**
 * Handles uncaught errors. One that began in a third-party plugin switches that plugin off; after any
 * other, the daemon's state is unknown.
 */
import type { PluginHost } from './host.ts';
import type { Logger } from '../contract/platform.ts';
import { sentence, stackOf } from '../platform/log/thrown.ts';
import { pluginToBlame } from './blame.ts';
import { actorNow } from './instance/acting-plugin.ts';

/** Finds out which plugin caused an error; exists once there are plugins. */
export interface Judge {
  readonly host: Pick<PluginHost, 'condemn'>;
  readonly log: Logger;
}

/** The real function; while the daemon runs, plugins get a replacement. */
export const endProcess = process.exit.bind(process);

export class UncaughtErrors {
  #judge: Judge | undefined;
  #onFatal: ((error: unknown) => void) | undefined;

  /** Listens from now on; a call of `process.exit()` counts as such an error, too. */
  install(): void {
    process.on('uncaughtException', (error) => {
      if (!this.#survives(error)) this.#fatal(error);
    });
    process.on('unhandledRejection', (error) => {
      if (this.#survives(error)) return;
      if (this.#judge)
        this.#judge.log.error({ err: error ?? sentence(error) }, 'unhandled promise rejection');
      else this.#fatal(error);
    });
    // A library that a plugin uses must not end the daemon for everybody.
    process.exit = (code) => {
      throw new Error(
        `process.exit(${code ?? ''}) was called inside the daemon, which ends by a signal alone`,
      );
    };
  }

  judgedBy(judge: Judge): void {
    this.#judge = judge;
  }

  set onFatal(listener: (error: unknown) => void) {
    this.#onFatal = listener;
  }

  #survives(error: unknown): boolean {
    if (!this.#judge) return isOfModule(error);
    const guilt = this.#judge.host.condemn(error);
    if (!guilt) return false;
    const { plugin, isSwitchedOff } = guilt;
    this.#judge.log.error(
      { plugin, err: error ?? sentence(error) },
      isSwitchedOff
        ? 'a plugin caused an uncaught error and is switched off'
        : 'what a former version of a plugin, or one that is off, has left behind caused an uncaught error',
    );
    return true;
  }

  #fatal(error: unknown): void {
    if (this.#onFatal) return this.#onFatal(error);
    process.stderr.write(`${stackOf(error) || sentence(error)}\n`);
    endProcess(1);
  }
}

/**
 * Whether it comes from what the module of a third party has begun, before there is anybody to switch that plugin off:
 * the document is checked first, and for that plugins are loaded. What fails again is judged then.
 */
function isOfModule(error: unknown): boolean {
  const actor = actorNow();
  if (actor?.folder === undefined) return false;
  const { name, folder } = actor;
  if (pluginToBlame(error, new Map([[name, folder]]), name) === undefined) return false;
  process.stderr.write(`the module of the plugin ${name} caused an uncaught error: ${sentence(error)}\n`);
  return true;
}
