/**
 * One runner: the process that a stranger's plugin lives in, or several that share it. It has a session of its
 * own, low priority within it, a user of its own beside a daemon that is root, no capabilities where `setpriv` can
 * drop them (root alone can empty the bounding set), five variables for its environment and one socket to the daemon.
 * A shell beside it reads from a pipe that the daemon holds open: when the daemon is gone, however it went, the shell
 * kills the whole session, and where it has a user of its own all of its group. Such a runner sees no processes but
 * its own, so that it can neither end nor stop another plugin's. Where the machine runs out of memory between two
 * looks, the kernel ends the runner first, not the daemon or a mount.
 */
import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import path from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../../contract/platform.ts';
import { childEnvironment } from '../../../platform/processes/environment.ts';
import { readProcStat } from '../../../platform/processes/proc-stat.ts';
import { nodeFlags, ownFolder } from './confinement.ts';
import type { Confinement } from './confinement.ts';
import { MessageLimit } from './message-limit.ts';
import { OwnSpace, SPACE } from './own-space.ts';
import type { SpaceLimit } from './own-space.ts';
import { asUser, FIRST_GROUP, runnerGroup } from './own-user.ts';
import { hasOwnNetwork, killAll, killGroup, leftBy, memoryOf, processTree } from './process-tree.ts';
import type { Root, Seen } from './process-tree.ts';
import { ProcessorShare } from './processor-share.ts';
import type { ProcessorLimit } from './processor-share.ts';
import { syntaxProblem } from '../../discovery/preflight.ts';
import { BrokenProtocol, FrameReader, sendTo, textOf } from '../protocol.ts';
import type { CallKind, FromRunner, Said, Seated, ToRunner } from '../protocol.ts';

const MAIN = fileURLToPath(new URL('../inside/runner-main.js', import.meta.url));
const CHANNEL = 3;
const LIFELINE = 4;
/** What each process holds open is looked at, one by one. */
const MOST_OPEN_FILES = 1_024;
/** Its own process group, with the shell itself, comes last. */
const WITH_LIFELINE = `{
  read -r _ <&${LIFELINE}
  is='[[:space:]]+' end='([[:space:]]|$)'
  for round in 1 2 3; do
    all=$(grep -lsE "^(NSsid:$is$$|Gid:$is$((${FIRST_GROUP} + $$)))$end" /proc/[0-9]*/status)
    for other in $(grep -LsE "^NSpgid:$is$$$end" $all /dev/null); do
      other=\${other#/proc/}
      kill -s KILL "\${other%/status}"
    done
  done
  kill -s KILL -- -$$
} </dev/null >/dev/null 2>&1 ${CHANNEL}>&- &
exec ${LIFELINE}<&-
apart=
by_user='unshare --user --map-current-user --net'
[ "$2" = plain ] || by_user=
[ "$1" = no-network ] && for apart in 'unshare --net' "$by_user" ''; do
  [ -z "$apart" ] || $apart true </dev/null >/dev/null 2>&1 ${CHANNEL}>&- && break
done
kind=$2
ulimit -f "$3" 2>/dev/null
ulimit -n ${MOST_OPEN_FILES} 2>/dev/null
shift 3
echo 1000 2>/dev/null >/proc/self/oom_score_adj
[ "$kind" = plain ] && for drop in '--bounding-set=-all --ambient-caps=-all' --ambient-caps=-all; do
  drop="setpriv --no-new-privs --inh-caps=-all $drop"
  $apart $drop true </dev/null >/dev/null 2>&1 ${CHANNEL}>&- && exec $apart $drop "$@"
done
if [ "$kind" != plain ]; then
  export RUNNER_GROUP=$((${FIRST_GROUP} + $$))
  unshare --pid --fork true </dev/null >/dev/null 2>&1 ${CHANNEL}>&- && apart="$apart unshare --pid --fork"
fi
exec $apart "$@"`;

/** Names the runner that a process comes from. */
const MARK = 'MOUNTKEEPER_RUNNER';

const HEAP_MIB = 128;
/** V8's own choice leaves up to 9 MB of what nobody uses any more resident; a plugin makes little of that. */
const YOUNG_MIB = 1;
/**
 * By the version of V8, which refuses a flag that it does not know. What runs often is compiled to machine code: by
 * V8's own choice so soon that a start alone gets the compiler's own 4 MB resident. Busy code gets there all the same.
 */
const LATER_COMPILED: Readonly<Record<string, readonly string[]>> = {
  '11.3': ['--interrupt-budget=1000000'],
  '12.4': ['--invocation-count-for-turbofan=20000'],
};
/** Of the runner and all that it has started together. */
const MOST_MEMORY_MIB = 256;
/** The runner itself, its shell, and `unshare` with a shell where it has processes of its own, are among them. */
const MOST_PROCESSES = 20;
/** Of one file, in 512 bytes, where it may write to its own folder alone: also of one that has no name any more. */
const MOST_FILE_BLOCKS = SPACE.mostBytes / 512;
const LOOK_MS = 2_000;
/** As much as the disk takes in that time stays beyond the limit. */
const SPACE_LOOK_MS = 1_000;
/** Pings that may stay without an answer: about ten seconds in which nothing else had a turn. */
const MOST_SILENT_LOOKS = 5;
/** An answer may be on its way. */
const SILENT_MS = 1_000;
/** Who was silent for so long is told of once it answers again. */
const NOTED_SILENCE_MS = 4_000;
/** One that is silent again and again is told of at most this often. */
const SAY_EVERY_MS = 60_000;
/** Of one plugin. */
const MOST_OPEN_CALLS = 200;
/** Longer than anybody waits for one. */
const CALL_MS = 60_000;
const END_MS = 5_000;
const LAST_WORDS_MS = 500;
const KEPT_OUTPUT = 8_192;
/** As a shell says it that cannot start what it is to start. */
const NO_ROOM = /Cannot fork|Resource temporarily unavailable/;
/** What is read of each of its outputs in a second; it waits where it prints more. */
const MOST_PRINTED_BYTES = 1_048_576;
const SECOND_MS = 1_000;

/** Why a runner is gone that was to stay. */
export interface RunnerEnd {
  /** A sentence. */
  readonly reason: string;
  /** The plugin that has ended it, where the stack says so. */
  readonly by?: string | undefined;
  /** The machine may have ended it, or have had no room for it. */
  readonly mayPass?: true;
  /** The plugin is not to blame: it comes back after so long, in milliseconds, and this does not count. */
  readonly againMs?: number;
}

/** Where one plugin runs: a process, or its seat in one that several share. */
export interface Runner {
  /**
   * Whether it is in the daemon's own network though its permissions say otherwise; also where that cannot be
   * seen. To be asked while it lives.
   */
  readonly hasOurNetwork: boolean;
  /** False when it is gone or does not read what it is sent. Throws for what cannot be sent. */
  send(message: ToRunner): boolean;
  /** Settles with its answer; rejects when it ends before. */
  call(kind: CallKind, index: number, args: readonly unknown[]): Promise<unknown>;
  /** Resolves when nothing is left of it: it has five seconds to release what it holds. */
  end(reason: string): Promise<void>;
  /** At once, and named as the cause. */
  kill(reason: string): void;
}

export interface RunnerOptions {
  readonly clock: Clock;
  readonly confinement: Confinement;
  readonly onMessage: (message: Said & Seated) => void;
  /** Once, when it is gone; with undefined after `end`. */
  readonly onEnd: (end: RunnerEnd | undefined) => void;
  /** What it prints, in whole lines. */
  readonly onLine: (line: string) => void;
  /** What somebody should know though it did not end it, as a sentence. */
  readonly onNote: (sentence: string) => void;
  /** Default: half a core over five minutes. */
  readonly processor?: ProcessorLimit;
  /** Default: 512 MiB and 50,000 files in the folder of each plugin. */
  readonly space?: SpaceLimit;
}

interface OpenCall extends Seated {
  readonly sinceMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class RunnerProcess implements Runner {
  readonly #options: RunnerOptions;
  readonly #child: ChildProcess;
  readonly #startTicks: string;
  /** All that it starts inherits it, unless it is kept from them. */
  readonly #mark = randomUUID();
  readonly #channel: Duplex;
  readonly #reader = new FrameReader();
  readonly #limit: MessageLimit;
  readonly #calls = new Map<number, OpenCall>();
  readonly #ended: Promise<void>;
  #lastCall = 0;
  #silentLooks = 0;
  /** Of the first ping that it has not answered. */
  #silentSinceMs = 0;
  #saidMs = -Infinity;
  /** As the last look saw them: one that ends by itself leaves its children to nobody. */
  #tree: readonly Seen[] = [];
  readonly #share: ProcessorShare;
  readonly #space: OwnSpace;
  #reason: string | undefined;
  #by: string | undefined;
  #mayPass = false;
  #isEnding = false;
  #hasExited = false;
  #isOver = false;
  #output = '';
  #cancelLook: () => void = () => undefined;
  #cancelSpaceLook: () => void = () => undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#share = new ProcessorShare(options.processor);
    this.#limit = new MessageLimit(options.clock);
    const { stateDir, name: alone, company = [alone] } = options.confinement;
    this.#space = new OwnSpace(
      company.map((name) => ownFolder({ stateDir, name })),
      options.space,
    );
    const child = spawned(options.confinement, { [MARK]: this.#mark });
    this.#child = child;
    this.#startTicks = (child.pid === undefined ? undefined : readProcStat(child.pid))?.startTicks ?? '0';
    this.#channel = child.stdio[CHANNEL] as Duplex;
    this.#channel.on('error', () => undefined);
    this.#channel.on('data', (chunk: Buffer) => this.#take(chunk));
    (child.stdio[LIFELINE] as Duplex).on('error', () => undefined);
    for (const stream of [child.stdout, child.stderr]) this.#listen(stream as Readable);
    this.#ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#hasExited = true;
        const swept = this.#sweep();
        // What it said last may lie in the socket still.
        const over = (): void => {
          cancel();
          void swept.then(() => {
            this.#over(code, signal);
            resolve();
          });
        };
        // Where the daemon was busy meanwhile, it reads first.
        const late = (): void => void setImmediate(over);
        const cancel = options.clock.after(LAST_WORDS_MS, late, { keepAlive: true });
        if (this.#channel.closed) over();
        else this.#channel.once('close', over);
      });
      child.once('error', (error) => {
        this.#reason ??= `it could not be started: ${error.message}`;
        this.#mayPass = true;
        this.#over(null, null);
        resolve();
      });
    });
    this.#look();
    void this.#lookAtSpace(child.pid);
  }

  get hasOurNetwork(): boolean {
    const { permissions } = this.#options.confinement;
    return !permissions.includes('network') && !hasOwnNetwork(this.#child.pid ?? 0);
  }

  /** Whether a ping waits for its answer. */
  get isSilent(): boolean {
    const silentMs = this.#options.clock.monotonic() - this.#silentSinceMs;
    return this.#silentLooks > 0 && silentMs > SILENT_MS;
  }

  send(message: ToRunner): boolean {
    return sendTo(this.#channel, message);
  }

  call(kind: CallKind, index: number, args: readonly unknown[], of: Seated = {}): Promise<unknown> {
    const open = [...this.#calls.values()].filter(({ seat }) => seat === of.seat);
    if (open.length >= MOST_OPEN_CALLS)
      return Promise.reject(new Error(`${MOST_OPEN_CALLS} calls before this one have no answer yet`));
    return new Promise((resolve, reject) => {
      const id = (this.#lastCall += 1);
      this.#calls.set(id, { ...of, resolve, reject, sinceMs: this.#options.clock.monotonic() });
      try {
        if (this.send({ is: 'call', ...of, id, kind, index, args })) return;
        throw new Error('its process does not take calls now');
      } catch (error) {
        this.#calls.delete(id);
        reject(error as Error);
      }
    });
  }

  /** What one of several was asked, and will not answer any more. */
  forgetCallsOf(seat: number): void {
    for (const [id, call] of this.#calls) {
      if (call.seat !== seat) continue;
      this.#calls.delete(id);
      call.reject(new Error('it has ended'));
    }
  }

  async end(reason: string): Promise<void> {
    if (this.#isOver) return;
    // Asked again it waits for the same end.
    if (this.#isEnding) return this.#ended;
    this.#isEnding = true;
    if (!this.send({ is: 'end', reason })) this.#kill();
    const kill = (): void => {
      this.#options.onNote(
        `it did not go within ${END_MS / 1_000} s and was ended: a release or a run of it waits, loops or blocks`,
      );
      this.#kill();
    };
    const cancel = this.#options.clock.after(END_MS, kill, { keepAlive: true });
    await this.#ended;
    cancel();
  }

  kill(reason: string): void {
    this.#reason ??= reason;
    this.#kill();
  }

  #kill(): void {
    void this.#killTree();
  }

  /** Looked at first: whose parent has ended is nobody's child. */
  async #killTree(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined || this.#hasExited) return;
    const tree = await processTree(this.#root(pid), true);
    if (!this.#hasExited) killGroup(pid);
    killAll(tree);
  }

  #root(leader: number): Root {
    return { leader, group: this.#options.confinement.user && runnerGroup(leader) };
  }

  #take(chunk: Buffer): void {
    if (this.#reason !== undefined) return;
    try {
      const messages = this.#reader.read(chunk);
      this.#limit.take(chunk.length, messages);
      for (const message of messages) this.#hear(message as FromRunner);
    } catch (error) {
      const { message } = error as Error;
      // Whatever it sent must not end the daemon.
      this.kill(error instanceof BrokenProtocol ? message : `it sent what cannot be taken: ${message}`);
    }
  }

  #hear(message: FromRunner): void {
    // Of one look, the daemon itself may have been late.
    if (this.#silentLooks > 1) this.#noteSilence();
    this.#silentLooks = 0;
    if (message.is === 'broke') this.#broke(message);
    else if (message.is === 'answer') this.#answer(message);
    else if (message.is !== 'pong') this.#options.onMessage(message);
  }

  #noteSilence(): void {
    const nowMs = this.#options.clock.monotonic();
    const silentMs = nowMs - this.#silentSinceMs;
    if (silentMs < NOTED_SILENCE_MS || nowMs - this.#saidMs < SAY_EVERY_MS) return;
    this.#saidMs = nowMs;
    this.#options.onNote(
      `it did not answer for about ${Math.round(silentMs / 1_000)} s: something in it loops or blocks`,
    );
  }

  #broke({ reason, by }: Extract<FromRunner, { is: 'broke' }>): void {
    if (this.#reason !== undefined) return;
    this.#reason = textOf(reason);
    if (typeof by === 'string') this.#by = by;
    // It ends right after that by itself. A plugin can say so, too, and nothing that comes then is heard.
    this.#options.clock.after(LAST_WORDS_MS, () => this.#kill());
  }

  #answer({ id, value, problem }: Extract<FromRunner, { is: 'answer' }>): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (problem === undefined) call?.resolve(value);
    else call?.reject(new Error(textOf(problem)));
  }

  #listen(stream: Readable): void {
    let rest = '';
    let printed = { sinceMs: 0, bytes: 0 };
    const resume = (): void => void stream.resume();
    stream.setEncoding('utf8').on('data', (text: string) => {
      const nowMs = this.#options.clock.monotonic();
      if (nowMs - printed.sinceMs >= SECOND_MS) printed = { sinceMs: nowMs, bytes: 0 };
      printed.bytes += Buffer.byteLength(text);
      if (printed.bytes > MOST_PRINTED_BYTES) {
        stream.pause();
        this.#options.clock.after(SECOND_MS, resume);
      }
      this.#output = (this.#output + text).slice(-KEPT_OUTPUT);
      const lines = (rest + text).slice(-KEPT_OUTPUT).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') this.#options.onLine(line);
    });
  }

  /** Every other second: does it answer, and what does it take? */
  #look(): void {
    this.#cancelLook = this.#options.clock.after(LOOK_MS, () => void this.#lookAt(this.#child.pid));
  }

  async #lookAt(pid: number | undefined): Promise<void> {
    if (pid === undefined) return;
    const tree = await processTree(this.#root(pid));
    if (this.#hasExited || this.#isOver) return;
    this.#tree = tree;
    const problem = this.#problem();
    if (problem !== undefined && !this.#isEnding) return this.kill(problem);
    this.#forgetCalls();
    if (this.#silentLooks === 0) this.#silentSinceMs = this.#options.clock.monotonic();
    this.#silentLooks += 1;
    this.send({ is: 'ping' });
    this.#look();
  }

  /** Those that never settle there must not be in the way of others. */
  #forgetCalls(): void {
    const beforeMs = this.#options.clock.monotonic() - CALL_MS;
    for (const [id, { sinceMs, reject }] of this.#calls) {
      if (sinceMs > beforeMs) continue;
      this.#calls.delete(id);
      reject(new Error(`it did not answer a call within ${CALL_MS / 1_000} s`));
    }
  }

  #problem(): string | undefined {
    const mebibytes = Math.round(memoryOf(this.#tree) / 1_048_576);
    if (mebibytes > MOST_MEMORY_MIB)
      return `it took ${mebibytes} MiB of memory; ${MOST_MEMORY_MIB} MiB is the most`;
    if (this.#tree.length > MOST_PROCESSES)
      return `it started ${this.#tree.length} processes; ${MOST_PROCESSES} is the most`;
    if (this.#silentLooks > MOST_SILENT_LOOKS)
      return this.#isStopped
        ? 'it did not answer for 10 s: a signal has stopped it, as SIGSTOP does'
        : 'it did not answer for 10 s: something in it loops or blocks';
    const busyMs = this.#tree.reduce((sum, one) => sum + one.busyMs, 0);
    return this.#share.problem(busyMs, this.#options.clock.monotonic());
  }

  /** The process that answers need not be the one that was started: `unshare` and a shell wait for it. */
  get #isStopped(): boolean {
    return this.#tree.some(({ state }) => state === 'T' || state === 't');
  }

  /** Also while it is asked to go: it has some seconds for that. */
  async #lookAtSpace(pid: number | undefined): Promise<void> {
    if (pid === undefined) return;
    const { clock } = this.#options;
    const found = await this.#space.problem(clock.monotonic(), () => processTree(this.#root(pid)));
    if (this.#hasExited || this.#isOver) return;
    if (!found) {
      this.#cancelSpaceLook = clock.after(SPACE_LOOK_MS, () => void this.#lookAtSpace(pid));
      return;
    }
    // Of several in the process, it is known whose folder it is.
    this.#by ??= path.basename(found.folder);
    this.kill(found.reason);
  }

  /** Its shell and all that it has started, also what has a session of its own and no parent any more. */
  async #sweep(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined) return;
    killGroup(pid);
    killAll([...this.#tree, ...(await leftBy(this.#root(pid), `${MARK}=${this.#mark}`, this.#startTicks))]);
  }

  #over(code: number | null, signal: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelLook();
    this.#cancelSpaceLook();
    const reason = this.#reason ?? this.#causeOf(code, signal);
    for (const { reject } of this.#calls.values()) reject(new Error('its process has ended'));
    this.#calls.clear();
    for (const stream of this.#child.stdio) stream?.destroy();
    const end = { reason, by: this.#by, ...(this.#mayPass && { mayPass: true as const }) };
    this.#options.onEnd(this.#isEnding ? undefined : end);
  }

  #causeOf(code: number | null, signal: string | null): string {
    if (/heap out of memory|Reached heap limit/.test(this.#output))
      return `it took more than ${HEAP_MIB} MiB of memory`;
    const syntax = syntaxProblem(this.#output);
    if (syntax !== undefined) return syntax;
    const ended = signal ?? (this.#options.confinement.user && signalIn(code));
    this.#mayPass = Boolean(ended) || NO_ROOM.test(this.#output);
    if (ended) return `it was ended by ${ended}`;
    return `it ended with exit code ${code ?? 'unknown'}`;
  }
}

/** As the shell that waits for a runner with processes of its own passes it on. */
function signalIn(code: number | null): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0];
}

/** Throws the sentence why there is none. */
function spawned(confinement: Confinement, variables: Readonly<Record<string, string>>): ChildProcess {
  const network = confinement.permissions.includes('network') ? 'network' : 'no-network';
  const heap = [`--max-old-space-size=${HEAP_MIB}`, `--max-semi-space-size=${YOUNG_MIB}`];
  const later = LATER_COMPILED[/^\d+\.\d+/.exec(process.versions.v8)?.[0] ?? ''] ?? [];
  const node = [process.execPath, ...heap, ...later, ...nodeFlags(confinement), MAIN];
  const { user } = confinement;
  const command = user ? asUser(user, confinement, node) : node;
  const kind = user ? 'as-user' : 'plain';
  const file = confinement.permissions.includes('files') ? 'unlimited' : String(MOST_FILE_BLOCKS);
  const child = spawn('/bin/sh', ['-c', WITH_LIFELINE, 'sh', network, kind, file, ...command], {
    cwd: '/',
    // The daemon's home is shut for another user.
    env: childEnvironment({ ...variables, ...(user && { HOME: '/nonexistent' }) }),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  // Where the daemon can open no more files, Node makes no streams, and emits the error later.
  if (child.stdio as unknown) return child;
  child.once('error', () => undefined);
  throw new Error('it could not be started: the daemon can open no more files');
}
