/**
 * Runners that several plugins share: one for each set of permissions, so that none gets more by its company. The
 * limits of a runner are those of all its plugins together, and what ends it ends all of them; it is laid to the
 * one whose code the stack shows, else to each of them. Code that was loaded stays until the process ends: it is
 * renewed when one has gone for good or failed, when one comes that it was not started for, and after many versions.
 */
import { createSerialQueue } from '../../../platform/serial-queue.ts';
import type { Logger } from '../../../contract/platform.ts';
import { companyOf, ownFolder } from './confinement.ts';
import type { Confinement } from './confinement.ts';
import { LogLines } from './log-lines.ts';
import { noRoom } from './own-space.ts';
import { giveOwnFolder } from './own-user.ts';
import { RunnerProcess } from './runner-process.ts';
import type { Runner, RunnerEnd, RunnerOptions } from './runner-process.ts';
import type { CallKind, Said, Seated, ToRunner } from '../protocol.ts';

/** For the others, when one has ended the process. */
const AGAIN_MS = 1_000;
/** As long as `end` gives the whole process. */
const LEAVE_MS = 5_000;
/** Versions that a process may hold of plugins that have been replaced. */
const MOST_REPLACED = 20;
/** The others go as well: none of them is to come back. */
const FOR_ALL: ReadonlySet<string> = new Set(['shutdown', 'handover']);

type Known = Pick<Confinement, 'permissions' | 'entry' | 'stateDir' | 'name'>;

export class SharedRunners {
  readonly #log: Logger;
  readonly #companies = new Map<string, Company>();
  /** The company of each plugin that is to share a process. */
  readonly #keys = new Map<string, string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Before any of them comes up: so the process is started for all. */
  expect(one: Known): void {
    this.#keys.set(one.name, companyOf(one));
  }

  /** It does not share a process any more. */
  forget(name: string): void {
    this.#keys.delete(name);
  }

  /** A place in the process of its company, which is started where there is none. */
  seat(options: RunnerOptions): Runner {
    const key = companyOf(options.confinement);
    this.#keys.set(options.confinement.name, key);
    const company = this.#companies.get(key) ?? new Company(key, this.#keys, this.#log);
    this.#companies.set(key, company);
    return company.seat(options);
  }
}

class Company {
  readonly #key: string;
  /** Of all companies. */
  readonly #keys: Map<string, string>;
  readonly #log: Logger;
  /** One comes or goes at a time. */
  readonly #queue = createSerialQueue();
  readonly #seats = new Map<number, Seat>();
  #process: RunnerProcess | undefined;
  #renewal: string | undefined;
  /** Whose files the process may use. */
  #names: ReadonlySet<string> = new Set();
  /** What was loaded in it. */
  readonly #entries = new Set<string>();
  #last = 0;

  constructor(key: string, keys: Map<string, string>, log: Logger) {
    this.#key = key;
    this.#keys = keys;
    this.#log = log;
  }

  seat(options: RunnerOptions): Seat {
    const seat = new Seat((this.#last += 1), options, (why) =>
      this.#queue.run(() => this.#unseat(seat, why)),
    );
    void this.#queue
      .run(() => this.#take(seat))
      .catch((error: unknown) =>
        seat.over({ reason: `it could not be started: ${(error as Error).message}` }),
      );
    return seat;
  }

  async #take(seat: Seat): Promise<void> {
    if (seat.isOver) return;
    await this.#renewFor(seat);
    this.#process ??= await this.#started(seat);
    if (seat.isOver) return this.#endWhenEmpty('reload');
    this.#entries.add(seat.options.confinement.entry);
    this.#seats.set(seat.number, seat);
    seat.sit(this.#process);
  }

  /** Node's permission model cannot let more in later, and Node never forgets what it has loaded. */
  async #renewFor({ name }: Seat): Promise<void> {
    if (!this.#process) return;
    if (!this.#names.has(name)) return this.#renew(`"${name}" comes to it`);
    if (this.#entries.size > this.#names.size + MOST_REPLACED)
      return this.#renew(`it holds ${this.#entries.size} versions of its plugins`);
  }

  async #started({ options }: Seat): Promise<RunnerProcess> {
    const { clock, space } = options;
    const { stateDir, user, name: first } = options.confinement;
    const expected = [...this.#keys].filter(([, key]) => key === this.#key).map(([name]) => name);
    const reasons = await Promise.all(expected.map((name) => noRoom(ownFolder({ stateDir, name }), space)));
    // One that keeps too much does not come: its folder would end the others at the first look.
    const coming = expected.filter((_, index) => reasons[index] === undefined);
    const company = [...new Set([first, ...coming])].sort();
    // Node lets in what is there when it is started.
    await Promise.all(company.map((name) => giveOwnFolder({ stateDir, name }, user)));
    this.#names = new Set(company);
    this.#entries.clear();
    const lines = new LogLines(clock, this.#log.child({ plugins: company }));
    return new RunnerProcess({
      clock,
      confinement: { ...options.confinement, company },
      onLine: (line) => lines.printed(line),
      onNote: (sentence) => this.#note(sentence),
      onMessage: (message) => this.#hear(message),
      onEnd: (end) => this.#over(end),
    });
  }

  /** Nobody can know which of them it was. */
  #note(sentence: string): void {
    const names = this.#present();
    const reason = names.length > 1 ? `${sentence}; it was one of ${names.join(', ')}` : sentence;
    for (const { options } of this.#seats.values()) options.onNote(reason);
  }

  #hear(message: Said & Seated): void {
    this.#seats.get(message.seat ?? 0)?.hear(message);
  }

  async #unseat(seat: Seat, reason: string): Promise<void> {
    if (seat.isOver) return;
    const { name, number } = seat;
    const wasIn = this.#seats.has(number);
    if (wasIn && this.#seats.size === 1) return this.#process?.end(reason);
    const left = await seat.leave(reason, LEAVE_MS);
    const held = left === 'left' ? undefined : this.#heldBy(name, left);
    this.#process?.forgetCallsOf(number);
    this.#seats.delete(number);
    seat.over(undefined);
    await this.#renewAfter(name, wasIn ? reason : undefined, held);
  }

  /** One that was not heard, or in a process that does not answer at all, could not let go: any of them blocks it. */
  #heldBy(name: string, left: 'late' | 'unheard'): string {
    return left === 'unheard' || this.#process?.isSilent === true
      ? `"${name}" could not let go of what it holds: one of ${this.#present().join(', ')} loops or blocks`
      : `"${name}" did not let go of what it holds`;
  }

  async #renewAfter(name: string, reason: string | undefined, held: string | undefined): Promise<void> {
    if (reason !== undefined && FOR_ALL.has(reason))
      return held === undefined ? undefined : this.#process?.end(reason);
    if (held !== undefined) await this.#renew(held);
    else if (reason === 'failure') await this.#renew(`"${name}" has failed`);
    else if (this.#keys.get(name) !== this.#key) await this.#renew(`"${name}" has left it`);
  }

  async #endWhenEmpty(reason: string): Promise<void> {
    if (this.#seats.size === 0) await this.#process?.end(reason);
  }

  async #renew(why: string): Promise<void> {
    if (this.#seats.size > 0)
      this.#log.info({ plugins: this.#present(), why }, 'a shared process is renewed');
    this.#renewal = why;
    await this.#process?.end('reload');
    this.#renewal = undefined;
  }

  #present(): readonly string[] {
    return [...this.#seats.values()].map(({ name }) => name).sort();
  }

  #over(end: RunnerEnd | undefined): void {
    const names = this.#present();
    const seats = [...this.#seats.values()];
    this.#seats.clear();
    this.#process = undefined;
    const why = this.#renewal;
    const asked = why === undefined ? undefined : { reason: `it is renewed, since ${why}`, againMs: 0 };
    for (const seat of seats) seat.over(end ? blamed(end, seat.name, names) : asked);
  }
}

/** Why the process has ended, as one of those in it is told. */
function blamed({ reason, ...said }: RunnerEnd, name: string, names: readonly string[]): RunnerEnd {
  // It is the process that says it, and what runs there can say it as well.
  const by = said.by !== undefined && names.includes(said.by) ? said.by : undefined;
  if (by === name || (by === undefined && names.length === 1)) return { reason };
  if (by !== undefined)
    return { reason: `"${by}", with which it shares it, has ended it: ${reason}`, againMs: AGAIN_MS };
  return { reason: `one of ${names.join(', ')}, which share it, has ended it: ${reason}` };
}

/** `unheard`: its process does not read, so it does not know that it is to go. */
type Left = 'left' | 'late' | 'unheard';

/** One plugin's place in a shared process. */
class Seat implements Runner {
  readonly number: number;
  readonly options: RunnerOptions;
  readonly #unseat: (reason: string) => Promise<void>;
  #process: RunnerProcess | undefined;
  /** Said before there was a process to hear it. */
  #unsent: ToRunner[] = [];
  #killed: string | undefined;
  #isOver = false;
  #onLeft: () => void = () => undefined;

  constructor(number: number, options: RunnerOptions, unseat: (reason: string) => Promise<void>) {
    this.number = number;
    this.options = options;
    this.#unseat = unseat;
  }

  get name(): string {
    return this.options.confinement.name;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get hasOurNetwork(): boolean {
    return this.#process?.hasOurNetwork ?? false;
  }

  get #seated(): Required<Seated> {
    return { seat: this.number };
  }

  sit(process: RunnerProcess): void {
    this.#process = process;
    const unsent = this.#unsent;
    this.#unsent = [];
    try {
      for (const message of unsent) this.send(message);
    } catch (error) {
      this.kill(`it cannot be told what to run: ${(error as Error).message}`);
    }
  }

  send(message: ToRunner): boolean {
    if (this.#isOver) return false;
    if (this.#process) return this.#process.send({ ...message, ...this.#seated });
    this.#unsent.push(message);
    return true;
  }

  call(kind: CallKind, index: number, args: readonly unknown[]): Promise<unknown> {
    if (!this.#process || this.#isOver)
      return Promise.reject(new Error('its process does not take calls now'));
    return this.#process.call(kind, index, args, this.#seated);
  }

  end(reason: string): Promise<void> {
    return this.#unseat(reason);
  }

  kill(reason: string): void {
    this.#killed ??= reason;
    void this.#unseat('failure');
  }

  hear(message: Said & Seated): void {
    if (message.is === 'left') this.#onLeft();
    else this.options.onMessage(message);
  }

  /** Whether it has let go of what it holds in time. */
  leave(reason: string, withinMs: number): Promise<Left> {
    if (!this.#process) return Promise.resolve('left');
    return new Promise((resolve) => {
      const settle = (left: Left): void => {
        cancel();
        resolve(left);
      };
      const cancel = this.options.clock.after(withinMs, () => settle('late'), { keepAlive: true });
      this.#onLeft = () => settle('left');
      // One that reads nothing lets go of nothing.
      if (!this.send({ is: 'leave', reason })) settle('unheard');
    });
  }

  /** With undefined where it was asked to go. */
  over(end: RunnerEnd | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onLeft();
    this.options.onEnd(this.#killed === undefined ? end : { reason: this.#killed });
  }
}
