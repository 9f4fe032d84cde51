/** Small JSON documents of plugins: `<state>/store/<plugin>/<name>.json`, each written atomically. */
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoredDocument, StoreOptions, StoreService } from '../../contract/services.ts';
import type { Clock, Logger } from '../../contract/platform.ts';
import { writeWhole } from '../../platform/files/atomic-file.ts';
import { NAME } from '../discovery/manifest.ts';
import { createSerialQueue } from '../../platform/serial-queue.ts';

const MOST_BYTES = 1_048_576;

interface Written {
  readonly version: number;
  readonly value: unknown;
}

export interface PluginStoreOptions {
  readonly stateDir: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
}

/** All plugins' documents. */
export class PluginStore {
  readonly #options: PluginStoreOptions;

  constructor(options: PluginStoreOptions) {
    this.#options = options;
  }

  /** The part of the store that belongs to one plugin. */
  of(plugin: string): StoreService {
    return Object.freeze({
      open: <T>(name: string, options: StoreOptions<T>) => this.#open(plugin, name, options),
    });
  }

  async #open<T>(
    plugin: string,
    name: string,
    { version, initial, migrate }: StoreOptions<T>,
  ): Promise<StoredDocument<T>> {
    demandRight(name, version);
    const file = join(this.#options.stateDir, 'store', plugin, `${name}.json`);
    const kept = await this.#read(file, plugin);
    if (kept && kept.version > version) {
      throw new Error(
        `the document "${name}" was written by a later version of the plugin (${kept.version}; ` +
          `this one knows ${version}); install that one`,
      );
    }
    const isEarlier = kept !== undefined && kept.version < version;
    const value = isEarlier && migrate ? migrate(kept.value, kept.version) : (kept?.value ?? initial);
    const document = new JsonDocument<T>(file, version, value as T);
    if (isEarlier) await document.save(value as T);
    return document;
  }

  /** Undefined when there is none. */
  async #read(file: string, plugin: string): Promise<Written | undefined> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const written = writtenIn(text);
    if (written) return written;
    const { clock, log } = this.#options;
    const aside = `${file}.broken-${new Date(clock.now()).toISOString().replaceAll(':', '-')}`;
    await rename(file, aside);
    log.warn(
      { plugin, file, aside },
      'a document of a plugin is damaged; it is moved aside and the plugin starts with a new one',
    );
    return undefined;
  }
}

function demandRight(name: string, version: number): void {
  if (!NAME.test(name))
    throw new Error(
      `the document's name ${JSON.stringify(name)} is not kebab-case; use small letters, digits and single hyphens`,
    );
  if (!Number.isInteger(version) || version < 1)
    throw new Error(`the version of the document "${name}" must be a whole number from 1 on`);
}

function writtenIn(text: string): Written | undefined {
  try {
    const { version, value } = JSON.parse(text) as Partial<Written>;
    return Number.isInteger(version) && value !== undefined
      ? { version: version as number, value }
      : undefined;
  } catch {
    // Not JSON: the caller puts the file aside and tells.
    return undefined;
  }
}

class JsonDocument<T> implements StoredDocument<T> {
  readonly #file: string;
  readonly #version: number;
  /** Kept as text, so that nobody can change the document through an object they hold. */
  #json: string;
  readonly #saving = createSerialQueue();

  constructor(file: string, version: number, value: T) {
    this.#file = file;
    this.#version = version;
    this.#json = jsonOf(value);
  }

  get value(): T {
    return JSON.parse(this.#json) as T;
  }

  /** Saves run one after the other, so the last call wins. */
  async save(value: T): Promise<void> {
    const json = jsonOf(value);
    await this.#saving.run(() => writeWhole(this.#file, `{"version":${this.#version},"value":${json}}\n`));
    this.#json = json;
  }
}

function jsonOf(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new Error('what is to be kept is not JSON');
  if (Buffer.byteLength(json) > MOST_BYTES)
    throw new Error(`what is to be kept is larger than ${MOST_BYTES} bytes`);
  return json;
}
