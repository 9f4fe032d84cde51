/**
 * Lets test files run beside each other as far as the machine carries them: each has a load, and those that
 * run may not pass the limit together. One with the load of the whole limit runs alone. Each test process
 * asks over a socket before it loads its file, and holds its turn until it ends. Where the machine is crowded, by
 * others or because it is slow, half of the limit runs: more would end no earlier, and miss its limits of time.
 */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { once } from 'node:events';

interface Turn {
  readonly name: string;
  readonly socket: Socket;
  readonly load: number;
}

export interface SlotRules {
  readonly limit: number;
  /** Of a file, by its name without the ending; at most the limit. */
  readonly load: (name: string) => number;
  /** Asked before each turn, and each second while somebody waits. */
  readonly isCrowded: () => boolean;
}

const AGAIN_MS = 1_000;

/** Admits test processes over a unix socket, first come, first served, up to a sum of loads. */
export class LoadSlots {
  private readonly waiting: Turn[] = [];
  private readonly running = new Set<Turn>();
  private readonly rules: SlotRules;
  private readonly server: Server;
  private readonly again = setInterval(() => this.next(), AGAIN_MS).unref();

  private constructor(rules: SlotRules) {
    this.rules = rules;
    this.server = createServer((socket) => this.admit(socket));
  }

  /** Listens on a unix socket at `path`; resolves when it does, rejects when the path is taken. */
  static async open(path: string, rules: SlotRules): Promise<LoadSlots> {
    const slots = new LoadSlots(rules);
    slots.server.listen(path);
    await once(slots.server, 'listening');
    return slots;
  }

  /** Those whose turn it is. */
  get names(): readonly string[] {
    return [...this.running].map(({ name }) => name);
  }

  /** Ends all connections, waiting or running; resolves when the socket is closed. */
  async close(): Promise<void> {
    clearInterval(this.again);
    this.server.close();
    for (const { socket } of [...this.waiting, ...this.running]) socket.destroy();
    await once(this.server, 'close');
  }

  private admit(socket: Socket): void {
    socket.on('error', () => undefined);
    socket.once('data', (said) => {
      const name = String(said).trim();
      const turn = { name, socket, load: this.rules.load(name) };
      this.waiting.push(turn);
      socket.once('close', () => this.release(turn));
      this.next();
    });
  }

  private release(turn: Turn): void {
    this.running.delete(turn);
    if (this.waiting.includes(turn)) this.waiting.splice(this.waiting.indexOf(turn), 1);
    this.next();
  }

  /** First come, first served, so that nobody waits for ever. */
  private next(): void {
    for (let [head] = this.waiting; head && this.mayRun(head); [head] = this.waiting) {
      this.waiting.shift();
      this.running.add(head);
      head.socket.write('go\n');
    }
  }

  private mayRun({ load }: Turn): boolean {
    const { isCrowded, limit } = this.rules;
    const running = [...this.running].reduce((sum, turn) => sum + turn.load, 0);
    return running + load <= limit && (running + load <= limit / 2 || running === 0 || !isCrowded());
  }
}
