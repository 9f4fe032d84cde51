import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';

/** What an installed rclone can do, as it said itself. */
export interface Abilities {
  /** First line of `rclone version`, for people. */
  readonly version: string;
  /** Names of the flags it takes, without dashes. */
  readonly flags: ReadonlySet<string>;
  /** Remote-control calls it knows. */
  readonly calls: ReadonlySet<string>;
}

interface Written { readonly format: 1; readonly binary: string; readonly version: string; readonly flags: readonly string[]; readonly calls: readonly string[] }

/** Keeps the answers of the binary that was asked last over restarts: asking starts four processes before the first share. */
export class RcloneMemory {
  readonly #stateDir: string;
  readonly #file: string;

  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.#file = join(stateDir, 'mount', 'rclone.json');
  }

  /** `binary` names one file at one age and size. Undefined when it is another one, or nothing can be read. */
  async recall(binary: string): Promise<Abilities | undefined> {
    const written = await readFile(this.#file, 'utf8').then((text) => JSON.parse(text) as Partial<Written> | null).catch(() => undefined);
    if (written?.format !== 1 || written.binary !== binary) return undefined;
    const { version, flags, calls } = written;
    if (typeof version !== 'string' || !isNames(flags) || !isNames(calls)) return undefined;
    return { version, flags: new Set(flags), calls: new Set(calls) };
  }

  /** Never rejects: without it the next start asks again. Where no daemon has made the state folder yet, a look at the machine does not. */
  async keep(binary: string, { version, flags, calls }: Abilities): Promise<void> {
    if (!(await stat(this.#stateDir).catch(() => undefined))?.isDirectory()) return;
    const written: Written = { format: 1, binary, version, flags: [...flags], calls: [...calls] };
    await writeWhole(this.#file, `${JSON.stringify(written)}\n`).catch(() => undefined);
  }
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}
