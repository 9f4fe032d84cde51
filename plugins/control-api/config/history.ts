/**
 * The documents that were applied, kept in one file of the state folder: a bounded number, readable by the
 * daemon's user alone.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import type { AppliedConfig, ConfigAuthor, Logger } from 'mountkeeper';

const MOST_VERSIONS = 20;
/** Characters of all texts together; one document may have a million. */
const MOST_CHARACTERS = 4 * 1024 * 1024;
const FILE = 'config-history.json';

export interface Version extends AppliedConfig {
  /** As it was applied, secrets and all. */
  readonly text: string;
}

/** What a later daemon must know to take a document back. */
export interface KeptTrial {
  readonly version: string;
  readonly former: string;
  readonly healthy: readonly string[];
}

interface Kept {
  readonly versions: readonly Version[];
  readonly trial?: KeptTrial | undefined;
}

export class History {
  readonly #file: string;
  readonly #log: Logger;
  /** The newest first. */
  #versions: readonly Version[] = [];
  #trial: KeptTrial | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(stateDir: string, log: Logger) {
    this.#file = join(stateDir, FILE);
    this.#log = log;
  }

  async load(): Promise<void> {
    const text = await readFile(this.#file, 'utf8').catch(() => '');
    const { versions, trial } = keptIn(text);
    this.#versions = versions;
    this.#trial = trial;
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

  /** Resolves when all is on the disk. */
  async written(): Promise<void> {
    await this.#writing;
  }

  #save(): void {
    this.#writing = this.#writing
      .then(() =>
        writeWhole(
          this.#file,
          JSON.stringify({ versions: this.#versions, trial: this.#trial } satisfies Kept),
        ),
      )
      .catch((err: unknown) =>
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

/** Out of a file that anything may have happened to. */
function keptIn(text: string): Kept {
  try {
    const { versions, trial } = JSON.parse(text) as { versions?: unknown; trial?: unknown };
    return {
      versions: Array.isArray(versions) ? bounded((versions as unknown[]).filter(isVersion)) : [],
      trial: isTrial(trial) ? trial : undefined,
    };
  } catch {
    // There is none yet, or it is none any more: the history begins anew.
    return { versions: [] };
  }
}

function isVersion(value: unknown): value is Version {
  const { version, at, by, summary, text } = (value ?? {}) as Partial<Record<keyof Version, unknown>>;
  return [version, by, summary, text].every((one) => typeof one === 'string') && Number.isFinite(at);
}

function isTrial(value: unknown): value is KeptTrial {
  const { version, former, healthy } = (value ?? {}) as Partial<Record<keyof KeptTrial, unknown>>;
  return (
    typeof version === 'string' &&
    typeof former === 'string' &&
    Array.isArray(healthy) &&
    healthy.every((one) => typeof one === 'string')
  );
}
