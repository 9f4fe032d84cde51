/**
 * What becomes of errors that nobody caught. One that began in a third party's plugin takes out that plugin;
 * of any other nobody knows what it left half done.
 */
import type { PluginHost } from './host.ts';
import type { Logger } from '../contract/platform.ts';

/** Who can tell whose an error is, once there are plugins. */
export interface Judge {
  readonly host: Pick<PluginHost, 'condemn'>;
  readonly log: Logger;
}

/** The real one; while the daemon runs, plugins get another. */
export const endProcess = process.exit.bind(process);

export class UncaughtErrors {
  #judge: Judge | undefined;
  #onFatal: ((error: unknown) => void) | undefined;

  /** Listens from now on; a call of `process.exit()` is such an error, too. */
  install(): void {
    process.on('uncaughtException', (error) => {
      if (!this.#survives(error)) this.#fatal(error);
    });
    process.on('unhandledRejection', (error) => {
      if (this.#survives(error)) return;
      if (this.#judge) this.#judge.log.error({ err: error }, 'a promise was rejected and nobody listened');
      else this.#fatal(error);
    });
    // A library that ends its process, called by a plugin, would take the API away from everybody.
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
    const plugin = this.#judge?.host.condemn(error);
    if (plugin === undefined) return false;
    this.#judge?.log.error(
      { plugin, err: error },
      'a plugin broke off with an error that nobody caught and is switched off',
    );
    return true;
  }

  #fatal(error: unknown): void {
    if (this.#onFatal) return this.#onFatal(error);
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    endProcess(1);
  }
}
