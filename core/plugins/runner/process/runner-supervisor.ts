/**
 * Keeps one plugin's runner alive: started anew with back-off after it has ended by itself, and given up
 * after the third time within an hour. Holds what the runner last said of itself.
 */
import { isDeepStrictEqual } from 'node:util';
import Joi from 'joi';
import type { Clock } from '../../../contract/platform.ts';
import type { Commands } from '../../../contract/commands.ts';
import type { NotificationEvent } from '../../../contract/notifications.ts';
import type { PluginContext } from '../../../contract/plugin.ts';
import { Allowance } from '../../../platform/allowance.ts';
import { Budget } from '../../instance/given-values.ts';
import { oneLine } from '../../../sdk/one-line.ts';
import { howToAsk } from '../../permissions.ts';
import { ownFolder } from './confinement.ts';
import type { Confinement } from './confinement.ts';
import type { Begin, CallKind, Said, Read, State, ToRunner } from '../protocol.ts';
import { CARRIED_COMMANDS, frame, textOf } from '../protocol.ts';
import { noRoom } from './own-space.ts';
import type { SpaceLimit } from './own-space.ts';
import type { Runner, RunnerEnd, RunnerOptions } from './runner-process.ts';
import { LogLines } from './log-lines.ts';

const HOUR_MS = 3_600_000;
const MOST_CRASHES = 3;
/** As long as the host waits for one effect. */
const START_MS = 30_000;
/** Commands of one plugin that are carried out in a second: each may be work for every share. */
const MOST_COMMANDS = 20;
const SECOND_MS = 1_000;
/** Each goes to people, and is kept until it is delivered. */
const MOST_NOTIFICATIONS = 20;
const MINUTE_MS = 60_000;
/** Characters of its name; longer ones there are not. */
const LONGEST_COMMAND = 100;
/** Characters of a notification's data, as JSON. */
const MOST_DATA = 16_384;
const LATE_MS = 10_000;
/** How long it may read nothing while more waits for it than its socket takes. */
const DEAF_MS = 10_000;
const BACK_OFF_MS = [1_000, LATE_MS];
const STOPPED = 'it was stopped while it started';

/** Times (monotonic) at which a plugin's runners ended by themselves; of all its instances together. */
export type Crashes = number[];

export interface RunnerSupervisorOptions {
  readonly ctx: PluginContext;
  readonly clock: Clock;
  readonly crashes: Crashes;
  readonly confinement: Confinement;
  /** Default: 512 MiB and 50,000 files in its folder. */
  readonly space?: SpaceLimit;
  /** Starts a runner, or takes a seat in one. */
  readonly launch: (options: RunnerOptions) => Runner;
  /** It is switched off: no seat is kept for it, also where it has none just now. */
  readonly giveUpSeat?: (() => void) | undefined;
  /** The first message to each new runner. */
  readonly begin: () => Extract<ToRunner, { is: 'begin' }>;
  /** It has ended by itself too often. */
  readonly onGivenUp: (reason: string) => void;
  /** It has ended by itself, with what comes now; undefined once it is there again, or is not wanted any more. */
  readonly onAbsence: (why: string | undefined) => void;
  /** One of its events is given, by a place in the ledger, where there may be none. Its value has not been checked. */
  readonly onEvent: (index: number, value: unknown) => void;
  /** Told with sentences about its runs that take long. */
  readonly onLate: (late: readonly string[]) => void;
  /** Told with each that comes up: whether it has the daemon's network though it may not use it. */
  readonly onNetwork: (isOurs: boolean) => void;
}

/** What it has to be told does not fit into a message: that is not the plugin's work, and no crash. */
class CannotBegin extends Error {}

/** What it must know to be right, and can be told at any time: that of now is what counts. */
type Told = Extract<ToRunner, { is: 'config' | 'world' | 'log-level' }>;

type Answer = Extract<ToRunner, { is: 'answer' }>;

/** What a runner could not be told since it does not read, from when on, and how not to try again. */
interface Untold {
  readonly sinceMs: number;
  readonly kinds: Set<Told['is']>;
  answers: Answer[];
  cancel: () => void;
}

/** Nothing is known of a runner that does not run. */
export class NotRunning extends Error {}

export class RunnerSupervisor {
  readonly #options: RunnerSupervisorOptions;
  readonly #lines: LogLines;
  #runner: Runner | undefined;
  #isUp = false;
  #isOver = false;
  #state: State | undefined;
  #cancelRestart: () => void = () => undefined;
  #untold: Untold | undefined;
  readonly #commands: Allowance;
  readonly #notifications: Allowance;

  constructor(options: RunnerSupervisorOptions) {
    this.#options = options;
    this.#commands = new Allowance(options.clock, { most: MOST_COMMANDS, everyMs: SECOND_MS });
    this.#notifications = new Allowance(options.clock, { most: MOST_NOTIFICATIONS, everyMs: MINUTE_MS });
    this.#lines = new LogLines(options.clock, options.ctx.log);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Resolves when the plugin is up in its process; rejects with the sentence why not. */
  async start(): Promise<void> {
    const { confinement, space } = this.#options;
    const reason = await noRoom(ownFolder(confinement), space);
    if (reason !== undefined) throw new Error(reason);
    if (this.#isOver) throw new Error(STOPPED);
    return new Promise((resolve, reject) => this.#launch(resolve, reject));
  }

  #launch(resolve: () => void, reject: (error: Error) => void): void {
    const begin = this.#options.begin();
    try {
      frame(begin);
    } catch (error) {
      return reject(new CannotBegin(`it cannot be told what to run: ${(error as Error).message}`));
    }
    const { clock, confinement, space } = this.#options;
    const runner: Runner = this.#options.launch({
      clock,
      confinement,
      ...(space && { space }),
      onLine: (line) => this.#lines.printed(line),
      onNote: (reason) => this.#options.ctx.log.warn({ reason }, 'the process of the plugin has hung'),
      onMessage: (message) => {
        if (message.is === 'up') {
          // Said again it means nothing: each time, the daemon would tell all that it tells one that begins.
          if (this.#isUp) return;
          cancel();
          this.#isUp = true;
          this.#options.onAbsence(undefined);
          this.#options.onNetwork(runner.hasOurNetwork);
          this.#catchUp(begin);
          resolve();
        } else if (message.is === 'failed') {
          runner.kill(textOf(message.reason));
        } else this.#hear(message);
      },
      onEnd: (end) => {
        cancel();
        const wasUp = this.#isUp;
        this.#lines.ended();
        this.#forget();
        // Another one has ended it while this one started: that is no failure of this one.
        if (end?.againMs !== undefined && !wasUp && !this.#isOver) return this.#launch(resolve, reject);
        reject(new Error(end?.reason ?? STOPPED));
        if (wasUp && end !== undefined) this.#ended(end);
      },
    });
    this.#runner = runner;
    const cancel = clock.after(START_MS, () =>
      runner.kill(`it did not come up within ${START_MS / 1_000} s`),
    );
    try {
      runner.send(begin);
    } catch (error) {
      runner.kill(`it cannot be told what to run: ${(error as Error).message}`);
    }
  }

  async stop(reason: string): Promise<void> {
    this.#isOver = true;
    this.#options.onAbsence(undefined);
    this.#cancelRestart();
    if (reason === 'disable') this.#options.giveUpSeat?.();
    await this.#runner?.end(reason);
  }

  /** Tells the runner, where there is one; later where it does not read now. */
  send(message: Told): void {
    if (this.#isUp && !this.#isTold(message)) this.#later().kinds.add(message.is);
  }

  /** False where it has to be told again. */
  #isTold(message: Told | Answer): boolean {
    try {
      return this.#runner?.send(message) ?? true;
    } catch (error) {
      this.#options.ctx.log.warn({ err: error }, 'the plugin was not told: its process takes no more');
      return true;
    }
  }

  /** What it is told once it reads again. */
  #later(): Untold {
    const { clock } = this.#options;
    return (this.#untold ??= {
      sinceMs: clock.monotonic(),
      kinds: new Set(),
      answers: [],
      cancel: clock.after(SECOND_MS, () => this.#tellAgain()),
    });
  }

  /** What is so now, of each kind that it has missed. */
  #tellAgain(): void {
    const { clock, begin } = this.#options;
    if (!this.#untold) return;
    const { kinds, sinceMs } = this.#untold;
    if (clock.monotonic() - sinceMs >= DEAF_MS)
      return this.#runner?.kill(`it has not read what it is told for ${DEAF_MS / 1_000} s`);
    for (const message of told(begin()))
      if (kinds.has(message.is) && this.#isTold(message)) kinds.delete(message.is);
    this.#untold.answers = this.#untold.answers.filter((answer) => !this.#isTold(answer));
    if (kinds.size + this.#untold.answers.length === 0) this.#untold = undefined;
    else this.#untold.cancel = clock.after(SECOND_MS, () => this.#tellAgain());
  }

  /** Rejects with a `NotRunning` while there is none. */
  call(kind: CallKind, index: number, args: readonly unknown[]): Promise<unknown> {
    if (!this.#isUp || !this.#runner) return Promise.reject(new NotRunning('its process is not running now'));
    return this.#runner.call(kind, index, args);
  }

  /** What the runner last read. Throws where it could not, or has not yet. */
  value(pick: (state: State) => Read | undefined): unknown {
    const read = this.#state && pick(this.#state);
    if (!read) throw new Error('its process has not said it yet');
    if ('problem' in read) throw new Error(textOf(read.problem));
    return read.value;
  }

  get state(): State | undefined {
    return this.#state;
  }

  /** It began with what was so then, and has heard of no change while it started. */
  #catchUp(begin: Begin): void {
    if (this.#isOver) return;
    const before = told(begin);
    told(this.#options.begin()).forEach((message, index) => {
      if (!isDeepStrictEqual(message, before[index])) this.send(message);
    });
  }

  #forget(): void {
    this.#options.onLate([]);
    this.#untold?.cancel();
    this.#untold = undefined;
    this.#isUp = false;
    this.#state = undefined;
    this.#runner = undefined;
  }

  #ended({ reason: said, againMs }: RunnerEnd): void {
    // Words of the daemon are added to what the plugin may have said.
    const reason = oneLine(said);
    if (againMs === undefined) this.#crashed(reason);
    else if (!this.#isOver) this.#comeBack(reason, againMs);
  }

  #crashed(reason: string): void {
    if (this.#isOver) return;
    const { clock, crashes, onGivenUp, onAbsence } = this.#options;
    const nowMs = clock.monotonic();
    crashes.push(nowMs);
    while ((crashes[0] ?? nowMs) < nowMs - HOUR_MS) crashes.shift();
    if (crashes.length >= MOST_CRASHES) {
      crashes.length = 0;
      const sentence = `its process ended ${MOST_CRASHES} times within an hour, at last because ${reason}`;
      onAbsence(sentence);
      return onGivenUp(sentence);
    }
    this.#comeBack(reason, BACK_OFF_MS[crashes.length - 1] ?? 0);
  }

  #comeBack(reason: string, waitMs: number): void {
    const { ctx, onAbsence } = this.#options;
    onAbsence(`its process ended (${reason}); it is started anew after ${waitMs / 1_000} s`);
    // Without a wait it is planned.
    ctx.log[waitMs === 0 ? 'info' : 'error'](
      { reason, againInMs: waitMs },
      `the process of the plugin has ended (${reason}) and is started anew`,
    );
    this.#startAfter(waitMs);
  }

  #startAfter(waitMs: number): void {
    const { clock, ctx, onAbsence } = this.#options;
    this.#cancelRestart = clock.after(waitMs, () => {
      this.start().catch((error: Error) => {
        if (!(error instanceof CannotBegin)) return this.#crashed(error.message);
        if (this.#isOver) return;
        onAbsence(`${error.message}; that is tried again after ${LATE_MS / 1_000} s`);
        ctx.log.error({ reason: error.message }, 'the process of the plugin cannot be started now');
        this.#startAfter(LATE_MS);
      });
    });
  }

  #hear(message: Said): void {
    if (message.is === 'state') this.#takeState(stateIn(message));
    else if (message.is === 'event') this.#hearEvent(message);
    else if (message.is === 'log') this.#lines.logged(message);
    else if (message.is === 'send') void this.#carryOut(message);
  }

  #takeState(state: State | undefined): void {
    if (!state) return;
    this.#state = state;
    this.#options.onLate(state.late ?? []);
  }

  /** A text would name what every list has, such as "push". */
  #hearEvent({ index, value }: Extract<Said, { is: 'event' }>): void {
    if (typeof index === 'number') this.#options.onEvent(index, value);
  }

  async #carryOut({ id, command: given, args }: Extract<Said, { is: 'send' }>): Promise<void> {
    // By nothing else an answer is found.
    if (typeof id !== 'number') return;
    const command = textOf(given, LONGEST_COMMAND);
    const asker = this.#runner;
    try {
      if (!this.#options.confinement.permissions.includes('send-commands'))
        throw new Error(
          `ctx.send("${command}") needs the permission "send-commands"; ${howToAsk('send-commands')}`,
        );
      if (!this.#commands.take())
        throw new Error(
          `ctx.send("${command}") comes too often: ${MOST_COMMANDS} commands a second are the most`,
        );
      if (command === 'notify' && !this.#notifications.take())
        throw new Error(
          `ctx.send("notify") comes too often: ${MOST_NOTIFICATIONS} notifications a minute are the most`,
        );
      const checked = checkedArgs(command, args);
      const sent = command === 'notify' ? [this.#named(checked[0] as NotificationEvent)] : checked;
      await this.#options.ctx.send(command as keyof Commands, ...(sent as never));
      this.#answer(asker, { is: 'answer', id });
    } catch (error) {
      this.#answer(asker, { is: 'answer', id, problem: textOf((error as Error | null)?.message) });
    }
  }

  /**
   * Under its own name: receivers take what is signed for the daemon's word, and of equal keys the first is sent
   * alone.
   */
  #named({ type, message, data, key, ...event }: NotificationEvent): NotificationEvent {
    const { name } = this.#options.confinement;
    if (JSON.stringify(data).length > MOST_DATA)
      throw new Error(`ctx.send("notify") takes data of ${MOST_DATA} characters at the most`);
    return {
      ...event,
      type: type.startsWith(`${name}.`) ? type : `${name}.${type}`,
      message: message.startsWith(`${name}: `) ? message : `${name}: ${message}`,
      data,
      key: `${name} ${key}`,
    };
  }

  /**
   * Also while it comes up: an effect may wait for it. Not lost where it does not read now: who waits for an answer
   * that never comes, waits for ever. A process that came later has numbers of its own.
   */
  #answer(asker: Runner | undefined, message: Answer): void {
    if (asker === this.#runner && !this.#isTold(message)) this.#later().answers.push(message);
  }
}

/** Secrets, which are of the world, before the section that refers to them. */
function told({ config, world, logLevel }: Begin): readonly Told[] {
  return [
    { is: 'log-level', level: logLevel },
    { is: 'world', world },
    { is: 'config', config },
  ];
}

/** Runs that take long, of one plugin, that are told. */
const MOST_LATE = 5;
/** Keys and values in what a command is given: a notification's data has 100 of each. */
const MOST_ARGUMENTS = 300;

/** By the contract of the commands. */
const ARGS: Readonly<Record<string, Joi.Schema>> = {
  bwlimit: Joi.object({ up: Joi.string().max(100).required(), down: Joi.string().max(100).required() }),
  reconnect: Joi.string().max(1_000),
  notify: Joi.object({
    type: Joi.string().max(200).required(),
    severity: Joi.valid('info', 'warning', 'error').required(),
    message: Joi.string().max(4_096).required(),
    data: Joi.object()
      .pattern(
        Joi.string().max(200),
        Joi.alternatives(Joi.string().allow('').max(4_096), Joi.number(), Joi.boolean(), null),
      )
      .max(100)
      .required(),
    key: Joi.string().max(1_000).required(),
  }),
};

function checkedArgs(command: string, args: unknown): readonly unknown[] {
  const shape = CARRIED_COMMANDS.has(command) ? ARGS[command] : undefined;
  if (!shape) throw new Error(`ctx.send("${command}") cannot be carried out of a process of its own`);
  const { error, value } = Joi.array()
    .ordered(shape.required())
    .required()
    .validate(smallCopy(command, args), { convert: false });
  if (error) throw new Error(refusal(command, error));
  return value as unknown[];
}

/** Joi goes through all keys of a table before it counts them, and does nothing else meanwhile. */
function smallCopy(command: string, args: unknown): unknown {
  try {
    return new Budget(MOST_ARGUMENTS).copy(args);
  } catch (error) {
    throw new Error(refusal(command, error as Error), { cause: error });
  }
}

function refusal(command: string, { message }: Error): string {
  return `ctx.send("${command}") was given what cannot be sent: ${message}`;
}

/** Undefined for what is none. Values in it are checked where they are used. */
function stateIn({ status, shareStatus, metrics, late }: State): State | undefined {
  const areReads = (list: unknown): boolean =>
    Array.isArray(list) && list.every((one) => typeof one === 'object' && one !== null);
  return [status, shareStatus, metrics].every(areReads)
    ? { status, shareStatus, metrics, late: linesIn(late) }
    : undefined;
}

function linesIn(given: unknown): readonly string[] {
  const lines: readonly unknown[] = Array.isArray(given) ? given.slice(0, MOST_LATE) : [];
  return lines.filter((line) => typeof line === 'string').map((line) => oneLine(line));
}
