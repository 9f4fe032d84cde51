import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import type { Provider, ProviderOption } from '../options/providers.ts';

interface Written {
  readonly format: 1;
  readonly binary: string;
}
interface WrittenVersion extends Written {
  readonly version: string;
}
interface WrittenProviders extends Written {
  readonly providers: readonly Provider[];
}

/**
 * Stores the answers of the last rclone binary across restarts: asking starts two processes before the
 * first share.
 */
export class RcloneMemory {
  readonly #stateDir: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
  }

  /**
   * First line of `rclone version`. `binary` identifies one file by path, age and size: undefined when
   * another binary was stored, or nothing can be read.
   */
  async recall(binary: string): Promise<string | undefined> {
    const { version } = (await this.#read<WrittenVersion>('rclone.json', binary)) ?? {};
    return typeof version === 'string' && version !== '' ? version : undefined;
  }

  /**
   * Never rejects: without the stored answer the next start asks again. `doctor` stores nothing while the
   * state folder does not exist.
   */
  async keep(binary: string, version: string): Promise<void> {
    await this.#write('rclone.json', { format: 1, binary, version });
  }

  /** The backends that it knows; otherwise as `recall`. */
  async recallProviders(binary: string): Promise<readonly Provider[] | undefined> {
    const { providers } = (await this.#read<WrittenProviders>('rclone-backends.json', binary)) ?? {};
    return Array.isArray(providers) && providers.length > 0 && providers.every(isProvider)
      ? providers
      : undefined;
  }

  /**
   * As `keep`, but only into a folder that exists and is our own: a check by another user must not leave
   * files that the daemon cannot replace.
   */
  async keepProviders(binary: string, providers: readonly Provider[]): Promise<void> {
    // Not there.
    const folder = await stat(join(this.#stateDir, 'mount')).catch(() => undefined);
    if (folder === undefined || folder.uid !== process.geteuid?.()) return;
    await this.#write('rclone-backends.json', { format: 1, binary, providers });
  }

  async #read<T extends Written>(name: string, binary: string): Promise<Partial<T> | undefined> {
    // Nothing kept: rclone is asked.
    const written = await readFile(join(this.#stateDir, 'mount', name), 'utf8')
      .then((text) => JSON.parse(text) as Partial<T> | null)
      .catch(() => undefined);
    return written?.format === 1 && written.binary === binary ? written : undefined;
  }

  async #write(name: string, written: WrittenVersion | WrittenProviders): Promise<void> {
    // No state folder yet, and no cause to make one.
    if (!(await stat(this.#stateDir).catch(() => undefined))?.isDirectory()) return;
    await writeWhole(join(this.#stateDir, 'mount', name), `${JSON.stringify(written)}\n`).catch(
      () => undefined,
    );
  }
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

function isProvider(value: unknown): value is Provider {
  const { types, options } = (value ?? {}) as Partial<Provider>;
  return (
    isNames(types) &&
    Array.isArray(options) &&
    options.every(
      (option: Partial<ProviderOption> | null) =>
        typeof option?.name === 'string' &&
        typeof option.isPassword === 'boolean' &&
        typeof option.isSensitive === 'boolean',
    )
  );
}
