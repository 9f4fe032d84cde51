/**
 * Lets test files run beside each other, but some alone: those whose limits of time belong to the issue and not to what happens to
 * run beside them. Each test process asks over a socket before it loads its file, and holds its turn until it ends.
 */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { once } from 'node:events';

interface Turn {
  readonly socket: Socket;
  readonly isAlone: boolean;
}

export class Turns {
  private readonly waiting: Turn[] = [];
  private readonly running = new Set<Turn>();
  private readonly alone: readonly string[];
  private readonly server: Server;

  private constructor(alone: readonly string[]) {
    this.alone = alone;
    this.server = createServer((socket) => this.admit(socket));
  }

  /** `alone` are names of files without their ending. */
  static async open(path: string, alone: readonly string[]): Promise<Turns> {
    const turns = new Turns(alone);
    turns.server.listen(path);
    await once(turns.server, 'listening');
    return turns;
  }

  async close(): Promise<void> {
    this.server.close();
    for (const { socket } of [...this.waiting, ...this.running]) socket.destroy();
    await once(this.server, 'close');
  }

  private admit(socket: Socket): void {
    socket.on('error', () => undefined);
    socket.once('data', (name) => {
      const turn = { socket, isAlone: this.alone.includes(String(name).trim()) };
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

  private mayRun({ isAlone }: Turn): boolean {
    return isAlone ? this.running.size === 0 : ![...this.running].some((turn) => turn.isAlone);
  }
}
