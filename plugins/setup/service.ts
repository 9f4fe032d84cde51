/**
 * The first-run set-up as a service. A NAS is asked only what the API itself would allow: each answer is
 * checked like a document over HTTP.
 */
import { editToml, readToml } from 'mountkeeper';
import type {
  Clock,
  Config,
  ConfigAnswer,
  ConfigAuthor,
  ConfigChanges,
  ConfigService,
  ConfigVerdict,
  LanAddresses,
  Mounter,
  NasAnswers,
  SetupAnswers,
  SetupService,
  ShareSpec,
  ShortCommand,
  ShortCommandResult,
} from 'mountkeeper';
import { lanAddresses } from './addresses.ts';
import { connectionOf, editsOf, knowsUser, shareNames } from './answers.ts';
import { hostKeyAdvice, shownHostKeys } from './host-keys.ts';

const PROBE_NAME = 'setup';
const LOOK_MS = 20_000;
const MOST_FOLDERS = 1_000;

/** Looked up at each call: inside the daemon, plugins come and go. */
export interface SetupTools {
  readonly clock: () => Clock;
  readonly config: () => ConfigService;
  readonly mounter: () => Mounter;
  readonly changes: () => Pick<ConfigChanges, 'check' | 'submit' | 'version'>;
  readonly run: (command: ShortCommand) => Promise<ShortCommandResult>;
  readonly signal: AbortSignal;
}

export class Setup implements SetupService {
  readonly #tools: SetupTools;

  constructor(tools: SetupTools) {
    this.#tools = tools;
  }

  get #config(): Config {
    return this.#tools.config().current.config;
  }

  get present(): readonly string[] {
    return this.#config.shares.map(({ name }) => name);
  }

  async folders(nas: NasAnswers, path: string): Promise<readonly string[]> {
    const verdict = await this.#verdict({ nas, folders: [path] });
    if (!verdict.ok) throw new Error(verdict.message);
    const list = this.#tools.mounter().folders?.bind(this.#tools.mounter());
    if (!list) throw new Error('the plugin that mounts shares cannot list folders');
    const share = {
      name: PROBE_NAME,
      connection: PROBE_NAME,
      remote_path: path,
      mount_point: '',
      read_only: true,
      protocols: [],
    } as ShareSpec['share'];
    const spec: ShareSpec = { share, connection: connectionOf(nas, PROBE_NAME) };
    const deadline = this.#tools.clock().deadline(LOOK_MS, this.#tools.signal);
    const found = await list(spec, deadline).catch((error: unknown) => {
      this.#tools.signal.throwIfAborted();
      throw deadline.aborted
        ? new Error(
            `the NAS did not answer within ${LOOK_MS / 1_000} s; is it switched on, and is the address right?`,
          )
        : error;
    });
    return [...found].sort((a, b) => a.localeCompare(b)).slice(0, MOST_FOLDERS);
  }

  shareNames(folders: readonly string[]): readonly string[] {
    return shareNames(folders, this.present);
  }

  async check(answers: SetupAnswers): Promise<ConfigVerdict> {
    const verdict = await this.#verdict(answers);
    if (!verdict.ok) return verdict;
    const connection = connectionOf(answers.nas, PROBE_NAME);
    const doubts = this.#tools.mounter().doubtsOf?.(connection) ?? [];
    const isUnchecked = connection.type === 'sftp' && doubts.length > 0;
    const keys = isUnchecked ? hostKeyAdvice(await shownHostKeys(connection, this.#tools)) : [];
    return { ...verdict, warnings: [...verdict.warnings, ...doubts, ...keys] };
  }

  preview(answers: SetupAnswers): string {
    const { connections, shares, smb } = this.#config;
    const config = this.#tools.config();
    const known = { connections, shares, smb };
    const edits = editsOf(answers, known, readToml(config.shown()));
    const first: Readonly<Record<string, number>> = {
      connections: connections.length,
      shares: shares.length,
      users: smb.users.length,
    };
    // Each list begins at its first new item: what is there already is not shown again.
    const alone = edits.map(({ path, value }) => ({
      path: path.map((segment, index) =>
        typeof segment === 'number' ? segment - (first[String(path[index - 1])] ?? 0) : segment,
      ),
      value,
    }));
    return config.shown(editToml('', alone));
  }

  addresses(shares: readonly string[], user: string, host?: string): readonly LanAddresses[] {
    return lanAddresses(shares, { user, host, ...this.#config.smb });
  }

  knowsUser(user: string): boolean {
    return knowsUser(this.#config, user);
  }

  async apply(answers: SetupAnswers, by: ConfigAuthor): Promise<ConfigAnswer> {
    const changes = this.#tools.changes();
    const { version } = changes;
    return changes.submit({ text: this.#text(answers), by, keepSecrets: true, version });
  }

  async #verdict(answers: SetupAnswers): Promise<ConfigVerdict> {
    return this.#tools.changes().check(this.#text(answers), { keepSecrets: true });
  }

  /** Throws a sentence. */
  #text(answers: SetupAnswers): string {
    const { connections, shares, smb } = this.#config;
    // As it stands in the file: shown to people it may have been written anew, without its notes.
    const { text } = this.#tools.config().current;
    return editToml(text, editsOf(answers, { connections, shares, smb }, readToml(text)));
  }
}
