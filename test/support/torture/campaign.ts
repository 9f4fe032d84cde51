/**
 * One torture run: a real daemon with one share, real clients that write to it, faults, and after each fourth round the
 * question whether the NAS holds what was acknowledged. While they write, each `all_synced` is held against the NAS.
 */
import { cpSync } from 'node:fs';
import { startWithExports, shownToAll } from '../clients/daemon-with-exports.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { Nas } from '../nas/nas.ts';
import type { NasProtocol } from '../nas/nas.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import { createScratch } from '../platform/scratch-folder.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { sleep, until } from '../platform/wait.ts';
import { differences, treeOf } from '../write-layer/folder-tree.ts';
import { ShareWorker } from '../write-layer/share-worker.ts';
import { describe, Expected } from './expected.ts';
import { FAULTS } from './faults.ts';
import { roundOf, WAYS } from './plan.ts';
import type { Round, Way } from './plan.ts';
import { writersOf } from './writers.ts';
import type { Answer, Writer } from './writers.ts';

export interface Choice {
  readonly seed: number;
  readonly nas: NasProtocol;
  /** Those of these numbers, or as many as begin within the time. */
  readonly rounds: readonly number[] | { readonly minutes: number };
  readonly say: (line: string) => void;
}

export interface Outcome {
  /** One line for each thing that must not be; empty when all is well. */
  readonly wrong: readonly string[];
  readonly rounds: readonly number[];
  /** Actions by their outcome, looks at the NAS by their cause, times somebody was told that something is missing. */
  readonly counts: Readonly<Record<string, number>>;
}

const SHARE = 'team 照片';
const FOLDER = 's';
const SYNCED_MS = 300_000;
const SHOWN_MS = 60_000;
const WATCH_MS = 400;
/** What an upload is called until it is whole. */
const UNFINISHED = /\.mk[0-9a-f]{8}: |\.partial: |(^|\/)\.mountkeeper-upload-/;
const BEGINNING = {
  a: 20_000,
  b: 900,
  'd/a': 300_000,
  'd/b': 100,
  'e/a': 5_000,
};

class Wrong extends Error {
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** Rejects when the run could not begin. Leaves nothing behind, also when it is told to end. */
export async function runCampaign(choice: Choice): Promise<Outcome> {
  const scratch = await createScratch('torture');
  const breakOff = (): void => void scratch.close().finally(() => process.exit(143));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, breakOff);
  try {
    const campaign = await Campaign.open(scratch, choice);
    return await campaign.run();
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, breakOff);
    await scratch.close();
  }
}

class Campaign {
  readonly #choice: Choice;
  readonly #nas: Nas;
  readonly #daemon: Daemon;
  readonly #writers: Readonly<Record<Way, Writer>>;
  readonly #expected: Expected;
  readonly #eyes: ShareWorker;
  readonly #counts: Record<string, number> = {};
  readonly #rounds: number[] = [];
  /** What the watch has seen. */
  #lies: string[] = [];
  #hasEnded = false;

  private constructor(
    scratch: Scratch,
    choice: Choice,
    parts: {
      readonly nas: Nas;
      readonly daemon: Daemon;
      readonly writers: Readonly<Record<Way, Writer>>;
    },
  ) {
    this.#choice = choice;
    this.#nas = parts.nas;
    this.#daemon = parts.daemon;
    this.#writers = parts.writers;
    this.#eyes = new ShareWorker(scratch);
    this.#expected = new Expected(scratch.path('model'));
  }

  static async open(scratch: Scratch, choice: Choice): Promise<Campaign> {
    const files = Object.fromEntries(
      WAYS.flatMap((way) =>
        Object.entries(BEGINNING).map(([path, bytes]) => [`${FOLDER}/${way}/${path}`, bytes]),
      ),
    );
    const nas = await Nas.create(scratch, {
      files,
      protocol: choice.nas,
      start: false,
    });
    cpSync(nas.path(FOLDER), scratch.path('model'), { recursive: true });
    await nas.start();
    const { daemon, access } = await startWithExports(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: nas.remotePath(FOLDER) }],
      sections: {
        supervisor: { stop_timeout: '280s' },
      },
    });
    await daemon.healthy([], SHOWN_MS);
    await shownToAll(access, SHARE, SHOWN_MS);
    const writers = writersOf({
      access,
      share: SHARE,
      mountPoint: daemon.mountPoint(SHARE),
    });
    return new Campaign(scratch, choice, { nas, daemon, writers });
  }

  async run(): Promise<Outcome> {
    const watch = this.#watch();
    let wrong: readonly string[] = [];
    try {
      await this.#allRounds();
      const { code } = await this.#daemon.stop('SIGTERM', SYNCED_MS);
      if (code === 0) await this.#assertOnNas('after the last stop, with exit 0');
      else this.#count(`a last stop with exit ${code}`);
    } catch (error) {
      wrong = error instanceof Wrong ? error.lines : [`the run broke off: ${(error as Error).message}`];
    } finally {
      this.#hasEnded = true;
      await watch;
    }
    return {
      wrong: [...wrong, ...this.#lies],
      rounds: this.#rounds,
      counts: this.#counts,
    };
  }

  async #allRounds(): Promise<void> {
    const { seed, rounds } = this.#choice;
    const names = FAULTS.map(({ name }) => name);
    const isListed = Array.isArray(rounds);
    const endMs = 'minutes' in rounds ? Date.now() + rounds.minutes * 60_000 : Infinity;
    for (let place = 0; isListed ? place < rounds.length : Date.now() < endMs; place += 1) {
      const round = roundOf(seed, isListed ? (rounds as readonly number[])[place]! : place, names);
      this.#rounds.push(round.number);
      await this.#round(round);
      if (round.isChecked) await this.#check(`after round ${round.number}`);
      if (this.#lies.length > 0) throw new Wrong([]);
    }
    await this.#check('at the end');
  }

  async #round(round: Round): Promise<void> {
    const fault = FAULTS.find(({ name }) => name === round.fault?.name);
    const { afterMs = 0, forMs = 0 } = round.fault ?? {};
    this.#choice.say(`round ${round.number}: ${fault?.name ?? 'no fault'}`);
    const strike = async (): Promise<void> => {
      await sleep(afterMs);
      const house = {
        daemon: this.#daemon,
        nas: this.#nas,
        share: SHARE,
        nasFolder: this.#choice.nas === 's3' ? undefined : this.#nas.path(FOLDER),
        assertOnNas: (when: string) => this.#assertOnNas(when),
      };
      await fault?.strike(house, forMs);
    };
    const writing = Promise.all(WAYS.map((way) => this.#write(way, round)));
    if (fault?.isAlone === true) await writing;
    await Promise.all([writing, strike()]);
    await sleep(round.pauseMs);
  }

  async #write(way: Way, round: Round): Promise<void> {
    for (const action of round.actions[way]) {
      if (this.#expected.isUnknown(way, action)) {
        this.#count('left out');
        continue;
      }
      const ended = this.#expected.begin(way, action, Date.now);
      const answer = await this.#writers[way].act(action);
      const outcome = this.#isDoubtful(way, action, answer) ? 'unknown' : answer.outcome;
      this.#count(outcome);
      if (outcome === 'unknown') this.#expected.unknown(way, action);
      const problem = outcome === 'done' ? this.#expected.done(way, action) : undefined;
      ended();
      this.#choice.say(`  ${describe(way, action)}: ${outcome} ${answer.words}`);
      if (problem !== undefined) throw new Wrong([problem]);
      this.#countMissing(way, action, answer);
    }
  }

  /**
   * Of a folder that was not there, a server may say that it is there already when it has made it and could not look
   * at it: WebDAV's 405 stands for any error but a folder above that is missing.
   */
  #isDoubtful(way: Way, action: Round['actions'][Way][number], { outcome }: Answer): boolean {
    return action.deed === 'make' && outcome === 'refused' && !this.#expected.isThere(way, action);
  }

  #countMissing(way: Way, action: Round['actions'][Way][number], { isMissing }: Answer): void {
    if (isMissing !== true || !this.#expected.isThere(way, action)) return;
    this.#count('told that something is missing');
    this.#choice.say(`  ${describe(way, action)}: said to be missing, though it was not deleted`);
  }

  /** Until all is on the NAS; rejects when it is not what was acknowledged, or the share shows something else. */
  async #check(when: string): Promise<void> {
    await this.#daemon.synced(SYNCED_MS);
    const contents = await this.#assertOnNas(`${when}, while all_synced is true`);
    const wanted = treeOf(contents);
    const shown = (): Promise<Record<string, string>> => this.#eyes.tree(this.#daemon.mountPoint(SHARE));
    await until('the share shows the same', async () => differences(await shown(), wanted).length === 0, {
      timeoutMs: SHOWN_MS,
      everyMs: 500,
    }).catch(async () => {
      throw new Wrong(differences(await shown(), wanted).map((line) => `${when}, on the share: ${line}`));
    });
    this.#expected.settle(contents);
  }

  /** Resolves with the NAS's content as a local folder. */
  async #assertOnNas(when: string): Promise<string> {
    const contents = await this.#nas.contents(FOLDER);
    const found = treeOf(contents);
    const lines = [...this.#expected.wrong(found), ...this.#expected.lost(found)];
    this.#count('looks at the NAS, nobody writing');
    if (lines.length > 0) throw new Wrong(lines.map((line) => `${when}: ${line}`));
    return contents;
  }

  /** Holds each `all_synced` against the NAS, where that is a plain folder. */
  async #watch(): Promise<void> {
    while (!this.#hasEnded && this.#lies.length === 0 && this.#choice.nas !== 's3') {
      await sleep(WATCH_MS);
      const askedAt = Date.now();
      const answer = await this.#daemon.get<{ all_synced: boolean }>('/api/status').catch(() => undefined);
      if (answer?.body?.all_synced !== true) continue;
      const ageMs = Number(answer.headers.get('mountkeeper-synced-age') ?? Infinity);
      this.#look(askedAt - ageMs);
    }
  }

  #look(askedMs: number): void {
    let found: Record<string, string>;
    try {
      found = treeOf(this.#nas.path(FOLDER));
    } catch {
      // The NAS renamed something in this very moment: the next look is as good.
      return;
    }
    this.#count('looks at the NAS, by all_synced');
    const lines = this.#expected.wrongSince(found, askedMs).filter((line) => !UNFINISHED.test(line));
    this.#lies = lines.map((line) => `all_synced was true, of ${Date.now() - askedMs} ms before: ${line}`);
  }

  #count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }
}
