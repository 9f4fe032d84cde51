/**
 * The one way in which documents over HTTP are checked and applied, and the history of all applied
 * documents.
 */
import { createSerialQueue } from 'mountkeeper';
import type {
  AppliedConfig,
  ConfigAnswer,
  ConfigApplied,
  ConfigChanges,
  ConfigCheck,
  ConfigDiff,
  ConfigSubmission,
  ConfigTrial,
  ConfigVerdict,
  LoadedConfig,
  Notice,
  PluginContext,
  Release,
  ShareStatus,
} from 'mountkeeper';
import { History } from './history.ts';
import type { KeptTrial, Version } from './history.ts';
import { interruptionOf } from './interruption.ts';
import { Trial } from './trial.ts';

const NOT_LET_IN = 'Whoever sent this is not let in any more.';
const CHANGED_MEANWHILE =
  'The configuration has been changed since you read it. ' +
  'Read it again, look at the difference, and make your change to what runs now.';
const NOT_ON_TRIAL = 'These settings are not on trial any more.';
/** How long people are told that settings were taken back. */
const TELL_MS = 3_600_000;

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** `mayShut`: what was applied may keep somebody out of a share. */
type Submitted = ConfigAnswer & { readonly mayShut?: boolean };

type Applied = Extract<ConfigApplied, { ok: true }>;

/** What was so before a document was applied, and what says whether its sender is let in since. */
interface Before extends Pick<ConfigSubmission, 'isStillLetIn'> {
  readonly healthy: readonly string[];
  readonly trial: KeptTrial | undefined;
}

export class Changes implements ConfigChanges {
  readonly #ctx: PluginContext;
  readonly #watchers = new Set<() => void>();
  readonly #kept: History;
  readonly #trial: Trial;
  /** The document of the newest version, once it was seen running. */
  #known: LoadedConfig | undefined;
  /** One submission at a time: otherwise the file could hold one text while the daemon runs another. */
  readonly #turns = createSerialQueue();
  #takenBack: { readonly at: number; readonly why: string } | undefined;

  constructor(ctx: PluginContext, history: History) {
    this.#ctx = ctx;
    this.#kept = history;
    this.#trial = new Trial({
      clock: ctx.use('clock'),
      history,
      shares: () => this.#configuredShares(),
      waiting: () => this.#waitingShares(),
      webProblem: () => ctx.use('web').problem,
      changed: () => this.#tell(),
      takeBack: (trial, why) => this.#takeBack(trial, why),
    });
  }

  /** A share that is no longer configured is in the status until it is unmounted. */
  #configuredShares(): readonly ShareStatus[] {
    const names = new Set(this.#ctx.use('config').current.config.shares.map(({ name }) => name));
    return this.#ctx.use('status').snapshot.record.shares.filter(({ name }) => names.has(name));
  }

  #waitingShares(): readonly string[] {
    const shares = this.#ctx.find('shares')?.list() ?? [];
    return shares.filter((share) => share.hasFormerSettings === true).map(({ spec }) => spec.share.name);
  }

  /** Takes over what a former daemon left. */
  async open(): Promise<void> {
    await this.#kept.load();
    const { trial } = this.#kept;
    this.sync();
    if (trial && trial.version === this.version) this.#trial.begin(trial);
    else this.#kept.trial = undefined;
  }

  async close(): Promise<void> {
    this.#trial.suspend();
    await this.#kept.written();
  }

  /** Adds changes that came from elsewhere. Returns the newest version. */
  sync(): Version {
    const { current } = this.#ctx.use('config');
    const newest = this.#kept.all[0];
    if (newest?.text === current.text) {
      this.#known = current;
      return newest;
    }
    // A document that a former daemon ran is kept only as text.
    const summary = this.#known
      ? this.#ctx.use('config').compare(this.#known.config, current.config).summary
      : '';
    return this.#add(current, current.origin === 'http' ? 'api' : 'file', summary);
  }

  #add(loaded: LoadedConfig, by: Version['by'], summary: string): Version {
    // Whoever applies something else has seen the document on trial.
    this.#trial.end();
    this.#takenBack = undefined;
    this.#known = loaded;
    const added = this.#kept.add({ text: loaded.text, at: this.#ctx.use('clock').now(), by, summary });
    this.#tell();
    return added;
  }

  get version(): string {
    return this.sync().version;
  }

  async check(
    text: string,
    { keepSecrets = false }: { readonly keepSecrets?: boolean | undefined } = {},
  ): Promise<ConfigVerdict> {
    const config = this.#ctx.use('config');
    const before = config.current.config;
    const check = await config.check(text, 'http', { keepSecrets });
    if (!check.ok)
      return { ok: false, stage: check.stage, message: messageOf(check), problems: check.problems };
    const { loaded, diff } = check;
    return {
      ok: true,
      summary: diff.summary,
      changes: diff.changes,
      interrupts: interruptionOf({
        diff,
        before,
        after: loaded.config,
        plugins: this.#ctx.use('plugins').list(),
      }),
      warnings: loaded.warnings,
    };
  }

  submit(submission: ConfigSubmission): Promise<ConfigAnswer> {
    return this.#inTurn(() => this.#submit(submission));
  }

  /** Whoever is told that it is done relies on nobody coming in by what was right before. */
  async #inTurn(apply: () => Promise<Submitted>): Promise<ConfigAnswer> {
    const exporters = this.#ctx.use('exporters');
    const { mayShut, ...answer } = await this.#turns.run(apply);
    return mayShut === true ? { ...answer, stillOpen: await exporters.enforce() } : answer;
  }

  /**
   * The order of the steps is part of the API: nothing is written before all checks, nothing is sent before
   * it is written.
   */
  async #submit(submission: ConfigSubmission): Promise<Submitted> {
    const { text, by, isStillLetIn, keepSecrets, version, onTrial } = submission;
    const config = this.#ctx.use('config');
    if (isStillLetIn?.() === false) return this.#answer(401, NOT_LET_IN);
    // Whoever has edited the file meanwhile has ended the trial.
    this.sync();
    if (version !== undefined && version !== this.version)
      return this.#answer(412, CHANGED_MEANWHILE, this.#since(version));
    const before = { healthy: this.#healthyShares(), trial: this.#trial.kept };
    const applied = await config.apply({ text, origin: 'http', keepSecrets });
    if (!applied.ok) return this.#refusal(applied);
    const { summary, changes } = applied.diff;
    if (changes.length === 0) return this.#answer(200, 'No changes detected', summary);
    const added = this.#add(applied.loaded, by, summary);
    if (onTrial === true) this.#try(added, applied, { ...before, isStillLetIn });
    return { ...this.#answer(200, 'Config applied successfully', summary), mayShut: mayShut(applied.diff) };
  }

  /** One that still has other settings than the running ones is none: this change is not why it may go down. */
  #healthyShares(): readonly string[] {
    const waiting = new Set(this.#waitingShares());
    return this.#ctx
      .use('status')
      .snapshot.record.shares.filter(({ name, health }) => health === 'healthy' && !waiting.has(name))
      .map(({ name }) => name);
  }

  /**
   * What is applied from the page while another document is on trial goes on trial with it: a share that the first one
   * has broken is not healed by the document in between. Not so where it changes who may enter: whoever was shut out
   * would come back by a share that fails.
   */
  #try(added: Version, applied: Applied, { healthy, trial, isStillLetIn }: Before): void {
    const { diff, former } = applied;
    if (diff.changes.some(({ isEntry }) => isEntry)) return this.#tryEntry(added, applied, isStillLetIn);
    // Who has sent this came in by the one that only had to be reached.
    const first = trial?.byReachAlone === true ? { former: former.text, healthy: [] } : trial;
    const back = first?.former ?? former.text;
    if (added.text === back) return;
    const judged = [...new Set([...healthy, ...(first?.healthy ?? [])])];
    this.#trial.begin({ version: added.version, former: back, healthy: judged });
  }

  /** It stays, but where its sender may have shut himself out: then somebody has to get in. */
  #tryEntry({ version }: Version, { diff, former }: Applied, isStillLetIn: Before['isStillLetIn']): void {
    const movesPage = diff.changes.some(({ path, isEntry }) => /^web(\.|$)/.test(path) && !isEntry);
    const staysIn = isStillLetIn?.() === true && !movesPage;
    if (!staysIn) this.#trial.begin({ version, former: former.text, healthy: [], byReachAlone: true });
  }

  #refusal(refused: Extract<ConfigApplied, { ok: false }>): ConfigAnswer {
    if ('problems' in refused) return this.#answer(400, messageOf(refused));
    const { stage, message, diff } = refused;
    const failed =
      stage === 'write'
        ? `Failed to write config file: ${message}`
        : `Failed to send reload command: ${message}`;
    return this.#answer(500, failed, diff.summary);
  }

  #answer(status: number, message: string, summary: string | null = null): ConfigAnswer {
    return { status, ok: status === 200, message, summary, version: this.version };
  }

  /** What was applied after a version, the oldest first. */
  #since(version: string): string | null {
    const { all } = this.#kept;
    const index = all.findIndex((one) => one.version === version);
    return index === -1
      ? null
      : all
          .slice(0, index)
          .reverse()
          .map(({ summary }) => summary)
          .filter((summary) => summary !== '')
          .join('\n');
  }

  history(): readonly AppliedConfig[] {
    this.sync();
    return this.#kept.all.map(({ version, at, by, summary }) => ({ version, at, by, summary }));
  }

  text(version: string): string | undefined {
    const found = this.#find(version);
    return found && this.#ctx.use('config').shown(found.text);
  }

  isAnew(version: string): boolean {
    const found = this.#find(version);
    return found !== undefined && this.#ctx.use('config').isShownAnew(found.text);
  }

  #find(version: string): Version | undefined {
    this.sync();
    return this.#kept.find(version);
  }

  async difference(version: string): Promise<ConfigVerdict | undefined> {
    const text = this.text(version);
    return text === undefined ? undefined : this.check(text, { keepSecrets: true });
  }

  // ---------------------------------------------------------------- trial

  get trial(): ConfigTrial | undefined {
    return this.#trial.state;
  }

  reached(version: string): boolean {
    return this.#trial.reached(version);
  }

  confirm(version: string): boolean {
    return this.#trial.keep(version);
  }

  async revert(version: string): Promise<ConfigAnswer> {
    const trial = this.#trial.kept;
    if (trial?.version !== version) return this.#answer(409, NOT_ON_TRIAL);
    return this.#takeBack(trial, 'somebody asked for it');
  }

  /**
   * Takes a document back only while it is running. The former one is not checked as one over HTTP: it was
   * accepted by the rules of its own source.
   */
  #takeBack(trial: KeptTrial, why: string): Promise<ConfigAnswer> {
    return this.#inTurn(async () => {
      const { log } = this.#ctx;
      // Whoever edits the file ends the trial, and somebody may have kept it while this waited for its turn.
      this.sync();
      if (!this.#trial.begins(trial.version)) return this.#answer(409, NOT_ON_TRIAL);
      const applied = await this.#applied(trial.former);
      if (!applied.ok) {
        log.error({ problem: applied.answer.message }, 'settings on trial could not be taken back');
        this.#trial.failed(trial.version, { problem: applied.answer.message, why });
        return { ...applied.answer, status: 500 };
      }
      log.warn({ why }, 'settings on trial were taken back');
      this.#add(applied.loaded, 'revert', applied.diff.summary);
      this.#takenBack = { at: this.#ctx.use('clock').now(), why };
      const answer = this.#answer(200, 'The former settings are in force again.', applied.diff.summary);
      return { ...answer, mayShut: mayShut(applied.diff) };
    });
  }

  async #applied(text: string): Promise<Applied | { readonly ok: false; readonly answer: ConfigAnswer }> {
    try {
      const applied = await this.#ctx.use('config').apply({ text, origin: 'file', isTakingBack: true });
      return applied.ok ? applied : { ok: false, answer: this.#refusal(applied) };
    } catch (error) {
      return { ok: false, answer: this.#answer(500, reasonOf(error)) };
    }
  }

  get takenBack(): Notice | undefined {
    const told = this.#takenBack;
    if (!told || this.#ctx.use('clock').now() - told.at > TELL_MS) return undefined;
    return {
      level: 'warning',
      message: `the settings that were applied last were taken back, since ${told.why}`,
    };
  }

  acknowledge(): void {
    this.#takenBack = undefined;
  }

  notices(): readonly Notice[] {
    const { problem } = this.#trial;
    if (problem !== undefined)
      return [
        {
          level: 'error',
          message: `the settings that were applied last cannot be taken back (${problem}); this is tried again`,
        },
      ];
    const { takenBack } = this;
    return takenBack ? [takenBack] : [];
  }

  watch(changed: () => void): Release {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  #tell(): void {
    for (const changed of this.#watchers) changed();
  }
}

/** Whether it may keep somebody out of a share. */
function mayShut({ changes }: ConfigDiff): boolean {
  return changes.some(({ path, tier }) => /^plugins\b/.test(path) || (tier !== 'live' && tier !== 'restart'));
}

function messageOf(check: Extract<ConfigCheck, { ok: false }>): string {
  return `${check.stage === 'parse' ? 'TOML parse error' : 'Validation error'}: ${check.message}`;
}
