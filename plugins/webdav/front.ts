import { join } from 'node:path';
import { ClearUp } from './front-clear-up.ts';
import { Door } from './front-door.ts';
import { Gate } from './front-gate.ts';
import { Journal } from './front-journal.ts';
import { createFront } from './front-server.ts';
import type { FrontLimits } from './front-server.ts';
import { prepareSpool } from './front-spool.ts';
import type { FrontReport, FrontState } from './front-state.ts';

/** What the daemon has said last, and all that follows from it. */
export class Front {
  readonly gates = new Map<string, Gate>();
  readonly door = new Door();
  readonly journal: Journal;
  readonly clearUp: ClearUp;
  #state: FrontState | undefined;
  #bodies: ReadonlySet<string> = new Set();
  readonly #cleared = new Set<string>();
  readonly #log: (sentence: string) => void;

  constructor(folder: string, log: (sentence: string) => void) {
    this.#log = log;
    this.journal = new Journal(join(folder, 'journal'));
    this.clearUp = new ClearUp({ journal: this.journal, spool: () => this.#spool().folder, log });
  }

  async open(): Promise<void> {
    const left = await this.journal.open();
    for (const upload of left) this.clearUp.add(upload);
    this.#bodies = new Set(left.flatMap(({ body }) => body ?? []));
  }

  get report(): FrontReport {
    return { shares: [...this.gates.values()].flatMap(({ attached }) => attached?.share ?? []) };
  }

  /** Resolves once nothing is held of what is no more. */
  async take(state: FrontState): Promise<void> {
    // Only what a former front left: never what is being received.
    if (!this.#cleared.has(state.spool)) await prepareSpool(state.spool, this.#bodies);
    this.#cleared.add(state.spool);
    this.#state = state;
    this.door.admitOnly(state);
    const wanted = new Map(state.shares.map((share) => [share.name, share]));
    for (const name of wanted.keys()) if (!this.gates.has(name)) this.gates.set(name, new Gate(name));
    await Promise.all([...this.gates.values()].map(async (gate) => {
      const share = wanted.get(gate.name);
      if (!share) return gate.detach(state.returning.includes(gate.name));
      const attaching = gate.attach(share);
      this.clearUp.run(gate);
      await attaching;
    }));
  }

  /** A server without a state lets nobody in. */
  createServer(limits?: FrontLimits): ReturnType<typeof createFront> {
    const put = { journal: this.journal, spool: () => this.#spool(), clearUp: this.clearUp };
    return createFront({ door: this.door, gates: this.gates, log: this.#log, put }, limits);
  }

  #spool(): { folder: string; minFreeBytes: number } {
    if (!this.#state) throw new Error('nothing has been said yet');
    return { folder: this.#state.spool, minFreeBytes: this.#state.minFreeBytes };
  }
}
