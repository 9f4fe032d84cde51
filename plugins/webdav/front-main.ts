/** The front's own process: clients on one side, the engines of the shares on the other. It outlives the daemon that started it. */
import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { ClearUp } from './front-clear-up.ts';
import { Door } from './front-door.ts';
import { Gate } from './front-gate.ts';
import { Journal } from './front-journal.ts';
import { createFront } from './front-server.ts';
import { clearSpool } from './front-spool.ts';
import { bodyOf } from './front-stat.ts';
import type { FrontReport, FrontState } from './front-state.ts';

const MAX_STATE_BYTES = 16 * 1_048_576;
const log = (sentence: string): void => console.error(sentence);

/** What the daemon has said last, and all that follows from it. */
class Front {
  readonly gates = new Map<string, Gate>();
  readonly door = new Door();
  readonly journal: Journal;
  readonly clearUp: ClearUp;
  #state: FrontState | undefined;
  #bodies: Set<string>  = new Set();

  constructor(folder: string) {
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
    if (this.#state?.spool !== state.spool) await clearSpool(state.spool, this.#bodies);
    this.#state = state;
    this.door.admitOnly(state);
    const wanted = new Map(state.shares.map((share) => [share.name, share]));
    for (const name of wanted.keys()) if (!this.gates.has(name)) this.gates.set(name, new Gate(name));
    await Promise.all([...this.gates.values()].map(async (gate) => {
      const share = wanted.get(gate.name);
      if (!share) return gate.detach(state.returning.includes(gate.name));
      const attaching = gate.attach(share);
      void this.clearUp.run(gate).catch((error: unknown) => log(`not cleared up: ${String(error)}`));
      await attaching;
    }));
  }

  /** A server without a state lets nobody in. */
  createServer(): ReturnType<typeof createFront> {
    const clearUp = (left: Parameters<ClearUp['add']>[0]): void => {
      this.clearUp.add(left);
      const gate = this.gates.get(left.share);
      if (gate?.attached) void this.clearUp.run(gate);
    };
    return createFront({ door: this.door, gates: this.gates, log, put: { journal: this.journal, spool: () => this.#spool(), clearUp } });
  }

  #spool(): { folder: string; minFreeBytes: number } {
    if (!this.#state) throw new Error('nothing has been said yet');
    return { folder: this.#state.spool, minFreeBytes: this.#state.minFreeBytes };
  }
}

async function control(front: Front, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const body = await bodyOf(request, MAX_STATE_BYTES);
    if (request.method === 'PUT' && body) await front.take(JSON.parse(body.toString('utf8')) as FrontState);
    response.end(JSON.stringify(front.report));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
}

async function main([folder = '', host = '', port = '']: readonly string[]): Promise<void> {
  process.umask(0o077);
  const front = new Front(folder);
  await front.open();
  const server = front.createServer();
  const fail = (error: Error): void => {
    log(error.message);
    process.exit(1);
  };
  await new Promise<void>((resolve) => server.once('error', fail).listen({ host, port: Number(port), exclusive: true }, resolve));
  server.off('error', fail).on('error', (error) => log(error.message));
  const socket = join(folder, 'control.sock');
  await rm(socket, { force: true });
  createServer((request, response) => void control(front, request, response)).once('error', fail).listen(socket, () => void chmod(socket, 0o600));
  process.once('SIGTERM', () => process.exit(0));
}

process.on('unhandledRejection', (error) => log(`unhandled: ${String(error)}`));
await main(process.argv.slice(2));
