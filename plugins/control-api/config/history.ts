/**
 * The history of applied documents, in one file of the state folder: a limited number, readable only by the
 * daemon's user.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLatestQueue, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { AppliedConfig, ConfigAuthor, Logger } from 'mountkeeper';

const MOST_VERSIONS = 20;
/** Characters of all texts together; one document may have up to a million. */
const MOST_CHARACTERS = 4 * 1024 * 1024;
const FILE = 'config-history.json';

export interface Version extends AppliedConfig {
  /** As it was applied, with its secrets. */
  readonly text: string;
}

/** What a later daemon needs to take a document on trial back. */
export interface KeptTrial {
  readonly version: string;
  readonly former: string;
  readonly healthy: readonly string[];
  /** The page that sent it has reached the daemon since; it does so once. */
  readonly isReached?: boolean;
  /** It changes who may enter: no share is judged, and it stays as soon as it is reached. */
  readonly byReachAlone?: boolean;
}

interface Kept {
  readonly versions: readonly Version[];
  readonly trial?: KeptTrial | undefined;
}

export class History {
  readonly #file: string;
  readonly #log: Logger;
  /** Newest first. */
  #versions: readonly Version[] = [];
  #trial: KeptTrial | undefined;
  /** What is to be kept is read when it is written. */
  readonly #writing = createLatestQueue<undefined>(() => this.#write());

  constructor(stateDir: string, log: Logger) {
    this.#file = join(stateDir, FILE);
    this.#log = log;
  }

  async load(): Promise<void> {
    const { versions, trial } = await this.#kept();
    this.#versions = versions;
    this.#trial = trial;
  }

  /** Empty where there is none yet, or none any more: then the history begins anew. */
  async #kept(): Promise<Kept> {
    try {
      const text = await readFile(this.#file, 'utf8').catch(undefinedWhenMissing);
      return text === undefined ? { versions: [] } : keptIn(text);
    } catch (err) {
      this.#log.error({ file: this.#file, err }, 'history of the configuration cannot be read');
      return { versions: [] };
    }
  }

  get all(): readonly Version[] {
    return this.#versions;
  }

  get trial(): KeptTrial | undefined {
    return this.#trial;
  }

  set trial(trial: KeptTrial | undefined) {
    if (trial === this.#trial) return;
    this.#trial = trial;
    this.#save();
  }

  find(version: string): Version | undefined {
    return this.#versions.find((one) => one.version === version);
  }

  add({
    text,
    at,
    by,
    summary,
  }: {
    readonly text: string;
    readonly at: number;
    readonly by: ConfigAuthor;
    readonly summary: string;
  }): Version {
    const version: Version = { version: randomBytes(6).toString('hex'), at, by, summary, text };
    this.#versions = bounded([version, ...this.#versions]);
    this.#save();
    return version;
  }

  /** Resolves when everything is on disk. */
  async written(): Promise<void> {
    await this.#writing.idle();
  }

  #save(): void {
    void this.#writing.push(undefined);
  }

  async #write(): Promise<void> {
    const kept: Kept = { versions: this.#versions, trial: this.#trial };
    await writeWhole(this.#file, JSON.stringify(kept)).catch((err: unknown) =>
      this.#log.warn({ file: this.#file, err }, 'history of the configuration not written'),
    );
  }
}

function bounded(versions: readonly Version[]): readonly Version[] {
  let characters = 0;
  return versions.slice(0, MOST_VERSIONS).filter(({ text }, index) => {
    characters += text.length;
    return index === 0 || characters <= MOST_CHARACTERS;
  });
}

/** Out of a file that anything may have happened to. Throws when it is no JSON. */
function keptIn(text: string): Kept {
  const { versions, trial } = JSON.parse(text) as { versions?: unknown; trial?: unknown };
  return {
    versions: Array.isArray(versions) ? bounded((versions as unknown[]).filter(isVersion)) : [],
    trial: isTrial(trial) ? trial : undefined,
  };
}

function isVersion(value: unknown): value is Version {
  const { version, at, by, summary, text } = (value ?? {}) as Partial<Record<keyof Version, unknown>>;
  return [version, by, summary, text].every((one) => typeof one === 'string') && Number.isFinite(at);
}

function isTrial(value: unknown): value is KeptTrial {
  const { version, former, healthy, isReached, byReachAlone } = (value ?? {}) as Partial<
    Record<keyof KeptTrial, unknown>
  >;
  return (
    [isReached, byReachAlone].every((flag) => ['boolean', 'undefined'].includes(typeof flag)) &&
    typeof version === 'string' &&
    typeof former === 'string' &&
    Array.isArray(healthy) &&
    healthy.every((one) => typeof one === 'string')
  );
}
