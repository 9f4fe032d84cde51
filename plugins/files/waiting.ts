/** What waits of each share, by its mount's own queue, and the sign by which open pages learn that it has changed. */
import { createHash } from 'node:crypto';
import type { LiveShare, Mount, PluginContext, QueuedUpload, UnsavedFile } from 'mountkeeper';
import { Fills, FRESH_MS } from './fills.ts';

const QUEUE_MS = 5_000;

type Queue = readonly QueuedUpload[];

interface Asked {
  /** The cycle's figures (monotonic). */
  readonly of: number | undefined;
  readonly queue: Promise<Queue>;
  sign?: Promise<string>;
}

interface Shown {
  readonly sign: string;
  /** Monotonic. */
  readonly since: number;
}

export class Waiting {
  readonly fills: Fills;
  readonly #ctx: PluginContext;
  readonly #asked = new WeakMap<Mount, Asked>();
  readonly #shown = new WeakMap<Mount, Shown>();

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
    this.fills = new Fills(() => ctx.use('clock'));
  }

  /** As it is now. Empty where nobody can tell. */
  async read(live: LiveShare): Promise<Queue> {
    return live.mount ? this.#ask(live.mount, live).queue : [];
  }

  /**
   * The same for who looks at each cycle: a mount has to look at every file that waits, so it is asked once for all
   * of them.
   */
  async latest(live: LiveShare): Promise<Queue> {
    return live.mount ? this.#ofCycle(live.mount, live).queue : [];
  }

  /**
   * Another text whenever an open folder of the share may have to be drawn anew: while nothing waits by the figures
   * that the daemon has anyway, and once more FRESH_MS after the last change, for what could not be asked until then.
   */
  async sign(live: LiveShare | undefined): Promise<string> {
    const mount = live?.mount;
    if (!mount) return '';
    const { dirtyFiles = 0, uploadedBytes = 0 } = live.figures?.stats ?? {};
    const queued = dirtyFiles > 0 ? await this.#signOfCycle(mount, live) : '';
    const sign = `${dirtyFiles} ${uploadedBytes} ${queued} ${this.fills.version(mount, live)}`;
    return this.#isSettled(mount, sign) ? `${sign} settled` : sign;
  }

  #isSettled(mount: Mount, sign: string): boolean {
    const now = this.#ctx.use('clock').monotonic();
    // Whoever opens a folder before the first sign has it from the remote.
    const former = this.#shown.get(mount) ?? { sign, since: -Infinity };
    const since = former.sign === sign ? former.since : now;
    this.#shown.set(mount, { sign, since });
    return now - since > FRESH_MS;
  }

  #ofCycle(mount: Mount, live: LiveShare): Asked {
    const asked = this.#asked.get(mount);
    const isOfCycle = asked?.of !== undefined && asked.of === live.figures?.takenAtMs;
    return isOfCycle ? asked : this.#ask(mount, live);
  }

  #ask(mount: Mount, { figures }: LiveShare): Asked {
    const asked = { of: figures?.takenAtMs, queue: this.#queueOf(mount) };
    this.#asked.set(mount, asked);
    return asked;
  }

  async #queueOf(mount: Mount): Promise<Queue> {
    const asked = mount.uploadQueue?.(this.#ctx.use('clock').deadline(QUEUE_MS));
    // Without it the badges say less, and nothing that is wrong about the remote.
    return (await asked?.catch(() => undefined)) ?? [];
  }

  #signOfCycle(mount: Mount, live: LiveShare): Promise<string> {
    const asked = this.#ofCycle(mount, live);
    asked.sign ??= asked.queue.then(signOf);
    return asked.sign;
  }
}

function signOf(queue: Queue): string {
  const lines = queue.map((file) => `${file.path}\0${file.bytes} ${file.changedAt ?? ''} ${stateOf(file)}`);
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
}

export function stateOf({ isUploading, failures }: QueuedUpload): UnsavedFile['state'] {
  if (isUploading) return 'uploading';
  return failures > 0 ? 'failed' : 'waiting';
}
