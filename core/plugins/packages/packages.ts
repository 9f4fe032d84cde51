/**
 * The service `pluginPackages`: what administrators may have done with packages of plugins on the page, where the file
 * allows it. Who asks and what they name is judged here, whatever a page has checked before.
 */
import type { Logger } from 'pino';
import type { Config } from '../../contract/config.ts';
import type { Requester } from '../../contract/http.ts';
import type { Clock } from '../../contract/platform.ts';
import type {
  PackageChange,
  PackageOrder,
  PackageRefusal,
  PackageSearch,
  PluginPackages,
} from '../../contract/services.ts';
import { messageOf } from '../../platform/log/thrown.ts';
import { isAnybodyAsked } from '../../sdk/http/route-access.ts';
import { oneLine } from '../../sdk/one-line.ts';
import { foundIn, problemIn, questionIn, resultIn } from './answers.ts';
import { runCommand } from './command-process.ts';
import type { RunCommand } from './command-process.ts';
import { isPackageSpec, searchWords } from './names.ts';

export interface PackagesOptions {
  readonly configFile: string;
  readonly config: () => Pick<Config, 'plugins' | 'web'>;
  /** Whether a plugin is active that asks for passwords. */
  readonly isGuarded: () => boolean;
  readonly requester: () => Requester | undefined;
  /** Names of the plugins that `plugin install` has put there. */
  readonly installed: () => readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly run?: RunCommand;
}

export interface OwnedPackages {
  readonly service: PluginPackages;
  /** Ends what is under way; resolves when its process has ended. Nothing begins any more. */
  close(): Promise<void>;
}

export function createPackages(options: PackagesOptions): OwnedPackages {
  const packages = new Packages(options);
  return {
    service: {
      get refusal() {
        return packages.refusal;
      },
      get change() {
        return packages.change;
      },
      get search() {
        return packages.search;
      },
      begin: (order) => packages.begin(order),
      agree: (what, question) => packages.agree(what, question),
      look: (words) => packages.look(words),
    },
    close: () => packages.close(),
  };
}

class Packages {
  change: PackageChange | undefined;
  search: PackageSearch | undefined;
  readonly #options: PackagesOptions;
  readonly #run: RunCommand;
  readonly #over = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** The sentences that were agreed to for the change that is under way, or was the last one. */
  #agreed: readonly string[] = [];

  constructor(options: PackagesOptions) {
    this.#options = options;
    this.#run = options.run ?? runCommand;
  }

  get refusal(): 'off' | 'nobody-asked' | undefined {
    const { config, isGuarded } = this.#options;
    const { plugins, web } = config();
    if (plugins.install_from_page !== true) return 'off';
    return isAnybodyAsked(web) && isGuarded() ? undefined : 'nobody-asked';
  }

  begin(order: PackageOrder): PackageRefusal | undefined {
    const refused = this.#refused() ?? (this.#isKnown(order) ? undefined : 'name');
    if (refused === undefined) this.#start(order, []);
    return refused;
  }

  agree(what: string, question: string): PackageRefusal | undefined {
    const refused = this.#refused();
    if (refused !== undefined) return refused;
    const { change } = this;
    const isAsked = change?.question !== undefined && change.question === question;
    if (!isAsked || change.order.what !== what) return 'question';
    this.#start(change.order, [...this.#agreed, question]);
    return undefined;
  }

  look(text: string): PackageRefusal | undefined {
    const refused = this.#refusedTo();
    if (refused !== undefined) return refused;
    if (this.search?.state === 'running') return 'busy';
    const words = searchWords(text);
    if (!words) return 'name';
    this.#keep(this.#look(words));
    return undefined;
  }

  async close(): Promise<void> {
    this.#over.abort(
      new Error('the daemon was stopped meanwhile; `mountkeeper plugin list` tells what is installed'),
    );
    await Promise.all(this.#running);
  }

  /** By who asks: nobody but an administrator of the page, and no program by its token. */
  #refusedTo(): PackageRefusal | undefined {
    if (this.refusal !== undefined) return this.refusal;
    const { principal } = this.#options.requester() ?? {};
    if (principal?.role !== 'admin' || principal.kind === 'token') return 'not-admin';
    return this.#over.signal.aborted ? 'busy' : undefined;
  }

  #refused(): PackageRefusal | undefined {
    return this.#refusedTo() ?? (this.change?.state === 'running' ? 'busy' : undefined);
  }

  #isKnown({ verb, what }: PackageOrder): boolean {
    if (verb === 'install') return isPackageSpec(what);
    return (verb === 'update' || verb === 'remove') && this.#options.installed().includes(what);
  }

  #start({ verb, what }: PackageOrder, agreed: readonly string[]): void {
    this.#agreed = agreed;
    const order = { verb, what };
    const startedAt = this.#options.clock.now();
    this.change = { order, startedAt, state: 'running', said: '' };
    this.#options.log.info({ ...order, agreed }, 'a plugin is changed from the page');
    this.#keep(this.#change({ order, startedAt, state: 'running', said: '' }));
  }

  async #change(began: PackageChange): Promise<void> {
    const { order } = began;
    const { log } = this.#options;
    const args = [order.verb, order.what, ...this.#agreed.map((sentence) => `--yes=${sentence}`)];
    try {
      const { code, stdout, stderr } = await this.#command(args, (line) => {
        this.change = { ...began, said: line };
      });
      const result = code === 0 ? resultIn(stdout, stderr) : undefined;
      if (result) {
        this.change = { ...began, state: 'done', result };
        log.info({ ...order, ...result }, 'a plugin was changed from the page');
        return;
      }
      const question = questionIn(stderr);
      const problem = problemIn(stderr, code);
      this.change = { ...began, state: 'failed', problem, ...(question !== undefined && { question }) };
    } catch (error) {
      this.change = { ...began, state: 'failed', problem: oneLine(messageOf(error)) };
    }
    log.warn({ ...order, problem: this.change.problem }, 'a plugin was not changed from the page');
  }

  async #look(words: readonly string[]): Promise<void> {
    const began = { words: words.join(' '), found: [] };
    this.search = { ...began, state: 'running' };
    try {
      const { code, stdout, stderr } = await this.#command(['search', ...words], () => undefined);
      const found = code === 0 ? foundIn(stdout) : undefined;
      this.search = found
        ? { ...began, state: 'done', found }
        : { ...began, state: 'failed', problem: problemIn(stderr, code) };
    } catch (error) {
      this.search = { ...began, state: 'failed', problem: oneLine(messageOf(error)) };
    }
  }

  #command(args: readonly string[], said: (line: string) => void): ReturnType<RunCommand> {
    const { configFile, clock } = this.#options;
    return this.#run({
      args,
      configFile,
      clock,
      signal: this.#over.signal,
      said: (line) => said(oneLine(line)),
    });
  }

  #keep(run: Promise<void>): void {
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
  }
}
