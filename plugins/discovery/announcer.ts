import { isDeepStrictEqual } from 'node:util';
import type { Clock, Logger, Notice, Offer, Processes } from 'mountkeeper';
import { announcedName } from './config.ts';
import type { DiscoveryConfig } from './config.ts';
import { linksOf } from './links.ts';
import type { Link } from './links.ts';
import { Responder } from './responder.ts';
import { locateWsdd, Wsdd } from './wsdd.ts';
import type { ExplorerEntry } from './wsdd.ts';

const SMB = '_smb._tcp';
/** The only port that Explorer uses. */
const EXPLORER_PORT = 445;
/** Interval of retries, because a name that was taken may have become free. */
const RETRY_MS = 60_000;

export interface AnnouncerTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly settings: DiscoveryConfig;
  /** What all protocols serve now. */
  readonly offers: () => readonly Offer[];
}

interface Voice {
  readonly link: Link;
  readonly responder: Responder;
  readonly sinceMs: number;
}

/** Announces what is really served, on the networks on which it is served, and withdraws it when it ends. */
export class Announcer {
  readonly #tools: AnnouncerTools;
  readonly #name: string;
  readonly #wsdd: Wsdd;
  #voices: readonly Voice[] = [];
  #isWsddMissing = false;
  #isClosed = false;

  constructor(tools: AnnouncerTools) {
    this.#tools = tools;
    this.#name = announcedName(tools.settings);
    this.#wsdd = new Wsdd(tools);
  }

  /** Updates the announcements to what is served now. One call at a time. */
  async settle(): Promise<void> {
    const links = this.#isClosed ? [] : linksOf(this.#tools.offers());
    await this.#settleVoices(links);
    if (this.#isClosed) return;
    const entry = this.#explorerEntry(links);
    this.#isWsddMissing = entry !== undefined && (await locateWsdd()) === undefined;
    await this.#wsdd.settle(this.#isWsddMissing ? undefined : entry);
  }

  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#settleVoices([]), this.#wsdd.close(keepsRunning)]);
  }

  notices(): readonly Notice[] {
    const silent = this.#voices.flatMap(({ link, responder: { problem } }) =>
      problem === undefined ? [] : [`not announced to macOS and Linux on ${link.interfaceName}: ${problem}`],
    );
    const windows = this.#isWsddMissing ? 'install the package wsdd' : this.#wsdd.problem;
    return [
      ...silent.map((message) => ({ level: 'warning' as const, message })),
      ...(windows === undefined
        ? []
        : [{ level: 'info' as const, message: `not shown in the network of Windows' Explorer: ${windows}` }]),
    ];
  }

  async #settleVoices(links: readonly Link[]): Promise<void> {
    const { clock, log } = this.#tools;
    const isOver = (voice: Voice): boolean =>
      voice.responder.problem !== undefined && clock.monotonic() - voice.sinceMs > RETRY_MS;
    const stays = this.#voices.filter(
      (voice) => !isOver(voice) && links.some((link) => isDeepStrictEqual(link, voice.link)),
    );
    await Promise.all(
      this.#voices.filter((voice) => !stays.includes(voice)).map(({ responder }) => responder.close()),
    );
    const fresh = this.#isClosed
      ? []
      : links.filter((link) => !stays.some((voice) => isDeepStrictEqual(link, voice.link)));
    const added = fresh.map((link) => ({
      link,
      responder: new Responder({ clock, log, name: this.#name, link }),
      sinceMs: clock.monotonic(),
    }));
    for (const { responder } of added) void responder.open();
    this.#voices = [...stays, ...added];
  }

  #explorerEntry(links: readonly Link[]): ExplorerEntry | undefined {
    const addresses = links
      .filter(({ offers }) => offers.some(({ service, port }) => service === SMB && port === EXPLORER_PORT))
      .map(({ address }) => address);
    return addresses.length === 0
      ? undefined
      : { name: this.#name, workgroup: this.#tools.settings.workgroup, addresses };
  }
}
