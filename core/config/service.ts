/**
 * The configuration service: checks documents against all discovered plugins, writes the file, and holds
 * the running document.
 */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type {
  Config,
  ConfigApplication,
  ConfigApplied,
  ConfigCheck,
  ConfigDiff,
  ConfigOrigin,
  ConfigService,
  LoadedConfig,
} from '../contract/config.ts';
import type { Requester } from '../contract/http.ts';
import type { Logger } from '../contract/platform.ts';
import { diffConfig, NO_DIFFERENCE } from './diff.ts';
import { listKeys } from './schema/key-tree.ts';
import { failure, load, validate } from './load.ts';
import { locate } from './checks/problems.ts';
import type { CheckServices } from './checks/plugin-checks.ts';
import { copy, parseDocument } from '../sdk/toml/document.ts';
import { holdsSecrets, redact } from './secrets/redact.ts';
import { renderDocument } from './render.ts';
import { partUnfit } from './checks/unfit-table.ts';
import type { Parted } from './checks/unfit-table.ts';
import { assemble } from './schema/schema.ts';
import { restoredText, shownText, unrestored } from './secrets/shown-text.ts';
import { isSecretPath, secretPaths } from './secrets/secret-paths.ts';
import type { Restored, Shown } from './secrets/shown-text.ts';
import type { Segment } from '../sdk/toml/path.ts';
import { admitThirdParty } from './checks/third-party.ts';
import type { ProtocolName } from './checks/protocols.ts';
import type { ThirdPartyPlugins } from './checks/third-party.ts';
import type { Assembly, ContributionEntry } from './schema/schema.ts';
import { writeWhole } from '../platform/files/atomic-file.ts';
import { undefinedWhenMissing } from '../platform/files/missing.ts';
import { messageOf } from '../platform/log/thrown.ts';
import { createSerialQueue } from '../platform/serial-queue.ts';
import { withTranslations } from './translations.ts';
import { createFileWriter } from './write.ts';

export type { ContributionEntry } from './schema/schema.ts';

const MAX_FILE_BYTES = 4_194_304;
const OPEN_SECRETS =
  'every user of this machine may read the file, and passwords, or what may be some, stand in it: ' +
  'give it mode 0600, or keep them elsewhere and refer to them';

export interface ConfigServiceOptions {
  readonly file: string;
  /** Contributions of all discovered plugins, active or not. */
  readonly entries: () => readonly ContributionEntry[];
  /** Protocols that plugins show shares by. Left out, any name is taken and none is filled in. */
  readonly protocols?: () => readonly ProtocolName[];
  readonly services: CheckServices;
  readonly log: Logger;
  /** Not the daemon's process: what only the daemon's environment and credentials may have is no problem here. */
  readonly isOffline?: boolean;
  /** Third-party plugins; absent where there are none. */
  readonly strangers?: () => ThirdPartyPlugins;
  /**
   * Called last, for a valid document that differs from the running one: a returned string is the reason to
   * refuse it.
   */
  readonly review?: (next: LoadedConfig, diff: ConfigDiff) => Promise<string | undefined>;
  /** Whose request is being worked for. */
  readonly requester?: () => Requester | undefined;
  /** Applies an accepted document, and commits it. Absent where no daemon is running. */
  readonly reload?: (next: LoadedConfig) => Promise<void>;
}

export interface OwnedConfigService extends ConfigService {
  /**
   * Reads and checks the file. A missing or unreadable file is a failed check. `isStrict`: so is one that
   * names a protocol which nobody knows; for people, not for a daemon, which would not start. `isStarting`: third
   * parties' plugins that the file does not fit are left out; by default where nothing runs and nobody is strict.
   */
  loadFile(options?: { readonly isStrict?: boolean; readonly isStarting?: boolean }): Promise<ConfigCheck>;
  /** Whether this text is what was read last and refused, or, where nothing was refused, is running. */
  isKnown(text: string): boolean;
  /** Makes an accepted document the running one. */
  commit(loaded: LoadedConfig): void;
}

export function createConfigService(options: ConfigServiceOptions): OwnedConfigService {
  return new FileConfigService(options);
}

class FileConfigService implements OwnedConfigService {
  readonly file: string;
  readonly #options: ConfigServiceOptions;
  readonly #write: ReturnType<typeof createFileWriter>;
  readonly #applications = createSerialQueue();
  #current: LoadedConfig | undefined;
  /** Text of the file that was refused. */
  #refused: string | undefined;
  #assembly: Assembly | undefined;
  #assembledFrom: readonly ContributionEntry[] = [];
  #assembledBefore = new WeakMap<LoadedConfig, Assembly>();

  constructor(options: ConfigServiceOptions) {
    this.file = resolve(options.file);
    this.#options = options;
    this.#write = createFileWriter(this.file);
  }

  get current(): LoadedConfig {
    if (this.#current === undefined) throw new Error('no configuration has been loaded yet');
    return this.#current;
  }

  async check(given: string, origin: ConfigOrigin, { keepSecrets = false } = {}): Promise<ConfigCheck> {
    const restored =
      keepSecrets && this.#current ? restoredText(given, this.#current, this.#assemble()) : unrestored(given);
    return this.#reviewed(await this.#check(restored, origin, { isStrict: origin === 'http' }));
  }

  async #check(
    restored: Restored,
    origin: ConfigOrigin,
    { isStrict = false, isStarting = false } = {},
  ): Promise<ConfigCheck> {
    const { text, kept, strange } = restored;
    const { services, strangers } = this.#options;
    // Before everything else, because the rest of the check needs every plugin imported.
    const refused = strangers
      ? await admitThirdParty(text, { origin, current: this.#current?.config, strangers: strangers() })
      : [];
    if (refused.length > 0) return failure('validate', locate(refused, text));
    const { assembly, unfit } = this.#assembleFor(text, origin, isStarting);
    const current = this.#comparable(assembly);
    const result = await load(text, {
      file: this.file,
      assembly,
      protocols: this.#protocols,
      services,
      origin,
      current,
      kept,
      strange,
      unfit,
      isStrict,
      isOffline: this.#options.isOffline,
      requestedBy: this.#options.requester?.(),
    });
    if (!result.ok) return result;
    this.#assembledBefore.set(result.loaded, assembly);
    const diff = current === undefined ? NO_DIFFERENCE : diffConfig(current, result.loaded.config, assembly);
    return { ok: true, loaded: result.loaded, diff };
  }

  /** The check, or the objection of a plugin. */
  async #reviewed(check: ConfigCheck): Promise<ConfigCheck> {
    if (!check.ok || check.diff.tier === undefined) return check;
    const objection = await this.#options.review?.(check.loaded, check.diff);
    return objection === undefined ? check : failure('validate', [{ message: objection }]);
  }

  async loadFile(options: { isStrict?: boolean; isStarting?: boolean } = {}): Promise<ConfigCheck> {
    const { isStrict = false } = options;
    const { isStarting = this.#current === undefined && !isStrict } = options;
    let read: { readonly text: string; readonly isOpen: boolean };
    try {
      read = await readText(this.file);
    } catch (error) {
      return failure('parse', [{ message: `the configuration file cannot be read: ${readReason(error)}` }]);
    }
    const check = await this.#reviewed(
      await this.#check(unrestored(read.text), 'file', { isStrict, isStarting }),
    );
    this.#refused = check.ok ? undefined : read.text;
    return check.ok && read.isOpen ? this.#withWarning(check) : check;
  }

  #withWarning(check: Extract<ConfigCheck, { ok: true }>): ConfigCheck {
    const assembly = this.#assembledBefore.get(check.loaded);
    if (assembly === undefined || !holdsSecrets(check.loaded.config, assembly)) return check;
    const loaded = Object.freeze({
      ...check.loaded,
      warnings: Object.freeze([...check.loaded.warnings, OPEN_SECRETS]),
    });
    this.#assembledBefore.set(loaded, assembly);
    return { ...check, loaded };
  }

  commit(loaded: LoadedConfig): void {
    this.#current = loaded;
  }

  compare(before: Config, after: Config): ConfigDiff {
    return diffConfig(before, after, this.#assemble());
  }

  apply(application: ConfigApplication): Promise<ConfigApplied> {
    const asked = this.current;
    return this.#applications.run(() => this.#apply(application, asked));
  }

  async #apply(application: ConfigApplication, asked: LoadedConfig): Promise<ConfigApplied> {
    const { text } = application;
    // A text was made from the document that was running when it was submitted: it would undo what was
    // applied since.
    const isFixed = typeof text === 'string';
    const former = isFixed ? asked : this.current;
    const given = isFixed ? text : await text(former);
    const check = await this.#checkFor(application, given);
    if (!check.ok) return check;
    const applied = { loaded: check.loaded, diff: check.diff, former };
    if (check.diff.changes.length === 0 && application.evenIfEqual !== true) return { ok: true, ...applied };
    const failed = await this.#carryOut(applied, application.beforeWrite);
    if (!failed) return { ok: true, ...applied };
    if (isFixed || failed.stage === 'send' || this.current.text === former.text) return failed;
    // The running document was replaced meanwhile: make the text again, from the new one.
    return this.#apply(application, asked);
  }

  #checkFor(
    { origin, keepSecrets = false, isTakingBack = false }: ConfigApplication,
    text: string,
  ): Promise<ConfigCheck> {
    return isTakingBack ? this.#check(unrestored(text), origin) : this.check(text, origin, { keepSecrets });
  }

  /** Writes before it sends. Resolves with what failed. */
  async #carryOut(
    { loaded, diff, former }: Omit<Extract<ConfigApplied, { ok: true }>, 'ok'>,
    beforeWrite: ConfigApplication['beforeWrite'],
  ): Promise<Extract<ConfigApplied, { stage: 'write' | 'send' }> | undefined> {
    try {
      await beforeWrite?.(loaded, former);
      await this.write(loaded.text, former);
    } catch (error) {
      return { ok: false, stage: 'write', message: messageOf(error), diff };
    }
    try {
      // Without a daemon it holds as soon as it is written.
      if (this.#options.reload) await this.#options.reload(loaded);
      else this.commit(loaded);
    } catch (error) {
      return { ok: false, stage: 'send', message: messageOf(error), diff };
    }
    return undefined;
  }

  async write(text: string, basis?: LoadedConfig): Promise<void> {
    await this.#keepRefused();
    await this.#write(text, basis && (() => this.#assertUnchanged(basis)));
  }

  /**
   * Runs in the write queue: of two writers that began with the same document, the second one finds what
   * the first has written.
   */
  async #assertUnchanged(basis: LoadedConfig): Promise<void> {
    // Gone: there is nothing in it that the new text could undo.
    const found = await readFile(this.file, 'utf8').catch(undefinedWhenMissing);
    const isSettled = found === undefined || found === this.#current?.text || found === this.#refused;
    // A text that is running or was refused has been read by the watcher. The same text may have been read
    // again meanwhile.
    if (basis.text !== this.#current?.text || !isSettled) {
      throw new Error('the configuration has just been changed by somebody else; look at it and try again');
    }
  }

  /** What somebody has saved with a mistake is in nobody's way, and stays beside: it may be an hour's work. */
  async #keepRefused(): Promise<void> {
    const refused = this.#refused;
    if (refused === undefined || refused === this.#current?.text) return;
    const found = await readFile(this.file, 'utf8').catch(undefinedWhenMissing);
    if (found === refused) await writeWhole(`${this.file}.refused`, refused);
  }

  isKnown(text: string): boolean {
    return text === (this.#refused ?? this.#current?.text);
  }

  render(document: Readonly<Record<string, unknown>>): string {
    return renderDocument(document, this.#assemble().root);
  }

  shown(text: string = this.current.text): string {
    return this.#shown(text).text;
  }

  isShownAnew(text: string = this.current.text): boolean {
    return this.#shown(text).isAnew;
  }

  secretsIn(document: Readonly<Record<string, unknown>>): (path: readonly Segment[]) => boolean {
    const paths = secretPaths(document as never, this.#assemble());
    return (path) => isSecretPath(paths, path);
  }

  #shown(text: string): Shown {
    const read = parseDocument(text);
    if ('problem' in read) throw new Error(read.problem.message);
    return shownText(text, read.document, this.#assemble(), this.#current?.text);
  }

  redacted(): Record<string, unknown> {
    return redact(this.current.config, this.#assemble());
  }

  keys(): ReturnType<ConfigService['keys']> {
    const { root, entries } = this.#assemble();
    return withTranslations(listKeys(root), entries);
  }

  get #protocols(): readonly ProtocolName[] | undefined {
    return this.#options.protocols?.();
  }

  /** Built anew only when another plugin set was discovered. */
  #assemble(): Assembly {
    const entries = this.#options.entries();
    const isSame =
      entries.length === this.#assembledFrom.length &&
      entries.every((entry, index) => isSameEntry(entry, this.#assembledFrom[index]));
    if (this.#assembly !== undefined && isSame) return this.#assembly;
    this.#assembly = assemble(entries);
    this.#assembledFrom = [...entries];
    for (const { owner, reason } of this.#assembly.rejected)
      this.#options.log.warn({ owner, reason }, 'configuration keys of a plugin left out');
    return this.#assembly;
  }

  /** What third parties' plugins declare that is not fulfilled is left out, where that may be. */
  #assembleFor(
    text: string,
    origin: ConfigOrigin,
    isStarting: boolean,
  ): { readonly assembly: Assembly; readonly unfit: Parted['unfit'] } {
    const parsed = parseDocument(text);
    if ('problem' in parsed) return { assembly: this.#assemble(), unfit: new Map() };
    const running = this.#current?.document;
    const moment = { origin, running, isStarting };
    const { entries, unfit } = partUnfit(this.#options.entries(), parsed.document, moment);
    return { assembly: unfit.size === 0 ? this.#assemble() : assemble(entries), unfit };
  }

  /**
   * The running configuration completed by the plugins that are discovered now, so that the defaults of a
   * new plugin are not a difference.
   */
  #comparable(assembly: Assembly): Config | undefined {
    const current = this.#current;
    if (current === undefined || this.#assembledBefore.get(current) === assembly) return current?.config;
    const again = validate(copy(current.document), { assembly, file: this.file, protocols: this.#protocols });
    return again.config ?? current.config;
  }
}

function isSameEntry(entry: ContributionEntry, other: ContributionEntry | undefined): boolean {
  return (
    entry.owner === other?.owner &&
    entry.contribution === other.contribution &&
    entry.enabledByDefault === other.enabledByDefault
  );
}

async function readText(file: string): Promise<{ readonly text: string; readonly isOpen: boolean }> {
  const stats = await stat(file);
  if (!stats.isFile()) throw new Error('it is not a plain file');
  if (stats.size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
  const bytes = await readFile(file);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, isOpen: (stats.mode & 0o004) !== 0 };
  } catch (error) {
    throw new Error('it is not UTF-8 text', { cause: error });
  }
}

function readReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  return message;
}
