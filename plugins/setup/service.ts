/**
 * The first run as a service. Nothing is asked of a NAS that the API might not bring in: each answer is
 * checked as a document is.
 */
import { editToml, readToml } from 'mountkeeper';
import type {
  Config,
  ConfigAnswer,
  ConfigAuthor,
  ConfigVerdict,
  NasAnswers,
  PluginContext,
  SetupAnswers,
  SetupService,
  ShareSpec,
} from 'mountkeeper';
import { connectionOf, editsOf, shareNames } from './answers.ts';

const PROBE_NAME = 'setup';
const LOOK_MS = 20_000;
const MOST_FOLDERS = 1_000;

export class Setup implements SetupService {
  readonly #ctx: PluginContext;

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
  }

  get #config(): Config {
    return this.#ctx.use('config').current.config;
  }

  async folders(nas: NasAnswers, path: string): Promise<readonly string[]> {
    const verdict = await this.check({ nas, folders: [path] });
    if (!verdict.ok) throw new Error(verdict.message);
    const list = this.#ctx.use('mounter').folders?.bind(this.#ctx.use('mounter'));
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
    const { clock, signal } = { clock: this.#ctx.use('clock'), signal: this.#ctx.signal };
    const deadline = clock.deadline(LOOK_MS, signal);
    const found = await list(spec, deadline).catch((error: unknown) => {
      throw deadline.aborted
        ? new Error(
            `the NAS did not answer within ${LOOK_MS / 1_000} s; is it switched on, and is the address right?`,
          )
        : error;
    });
    return [...found].sort((a, b) => a.localeCompare(b)).slice(0, MOST_FOLDERS);
  }

  shareNames(folders: readonly string[]): readonly string[] {
    return shareNames(
      folders,
      this.#config.shares.map(({ name }) => name),
    );
  }

  async check(answers: SetupAnswers): Promise<ConfigVerdict> {
    return this.#ctx.use('configChanges').check(this.#text(answers), { keepSecrets: true });
  }

  async apply(answers: SetupAnswers, by: ConfigAuthor): Promise<ConfigAnswer> {
    const changes = this.#ctx.use('configChanges');
    const { version } = changes;
    return changes.submit({ text: this.#text(answers), by, keepSecrets: true, version });
  }

  /** Throws a sentence. */
  #text(answers: SetupAnswers): string {
    const { connections, shares, smb } = this.#config;
    const text = this.#ctx.use('config').shown();
    return editToml(
      text,
      editsOf(
        answers,
        { connections, shares, smb: smb as unknown as { listen: string[]; users: { name: string }[] } },
        readToml(text),
      ),
    );
  }
}
