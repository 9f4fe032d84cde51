/** Users of the machine who may log in: who they are, and what PAM says of their passwords. */
import type { Config } from 'mountkeeper';
import { SystemGroup } from './group.ts';
import { SystemSignIns } from './sign-ins.ts';
import type { SystemSignInsOptions } from './sign-ins.ts';

export interface SystemAccountsOptions extends Omit<SystemSignInsOptions, 'members'> {
  readonly config: () => Config;
}

export class SystemAccounts {
  readonly #options: SystemAccountsOptions;
  readonly #group: SystemGroup;
  readonly #signIns: SystemSignIns;

  constructor(options: SystemAccountsOptions) {
    this.#options = options;
    this.#group = new SystemGroup(options);
    this.#signIns = new SystemSignIns({
      ...options,
      members: () => this.members(this.#name),
    });
  }

  /**
   * Of that group, as last read; undefined while it could not be read yet. Who stands in `webdav.users`, too, is nobody
   * here, though the password that stands there may not be known: an account of that name is not that user.
   */
  members(group: string | undefined): readonly string[] | undefined {
    const own = new Set(this.#options.config().webdav.users.map(({ name }) => name.normalize('NFC')));
    return this.#group.members(group)?.filter((name) => !own.has(name));
  }

  /** Who is a member now, by the running document; at most every 5 s. */
  read(): Promise<void> {
    return this.#group.read(this.#name);
  }

  /** To be called when the proxy has started, and again with each look: a document may name a group only now. */
  answer(): void {
    if (this.#name === undefined) this.#signIns.stop();
    else this.#signIns.start();
  }

  /** To be called when the proxy has ended. */
  stop(): void {
    this.#signIns.stop();
  }

  /** For good, whatever calls `answer` after it. */
  close(): void {
    this.#signIns.close();
  }

  /** For people to read. */
  get problems(): readonly string[] {
    if (this.#name === undefined) return [];
    const { problem } = this.#signIns;
    return [
      ...(this.#group.problem === undefined ? [] : [this.#group.problem]),
      ...(problem === undefined ? [] : [`users of this machine cannot log in over WebDAV: ${problem}`]),
    ];
  }

  get #name(): string | undefined {
    return this.#options.config().webdav.system_group;
  }
}
