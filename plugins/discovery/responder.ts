import type { RemoteInfo } from 'node:dgram';
import { BlockList } from 'node:net';
import type multicastDns from 'multicast-dns';
import type { MulticastDNS, QueryPacket, ResponsePacket } from 'multicast-dns';
import type { Clock, Logger } from 'mountkeeper';
import { ownAddresses } from './links.ts';
import type { Link } from './links.ts';
import { isRival, plainReply, recordsOf, replyTo } from './records.ts';
import type { Record, Records } from './records.ts';

const PORT = 5_353;
const PROBES = 3;
const PROBE_MS = 250;
const ANNOUNCEMENTS_AFTER_MS = [0, 1_000] as const;

export interface ResponderOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly name: string;
  readonly link: Link;
}

/** Answers queries about this machine on one network, by multicast DNS. */
export class Responder {
  readonly #options: ResponderOptions;
  readonly #records: Records;
  /** Every socket receives the queries of all networks of the machine. */
  readonly #network = new BlockList();
  readonly #end = new AbortController();
  #mdns: MulticastDNS | undefined;
  #isAnnounced = false;
  #problem: string | undefined;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#records = recordsOf(options.name, options.link);
    const [network = '', prefix] = options.link.network.split('/');
    this.#network.addSubnet(network, Number(prefix), 'ipv4');
  }

  /** Why it does not answer; undefined while it answers or is starting. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get isAnnounced(): boolean {
    return this.#isAnnounced;
  }

  /** First checks that the name is free, which takes a second; then announces. Never rejects. */
  async open(): Promise<void> {
    const { clock, log, link } = this.#options;
    try {
      const { default: createMdns } = await import('multicast-dns');
      this.#end.signal.throwIfAborted();
      // Bound to all addresses, because multicast packets do not reach a socket that is bound to one
      // address.
      const mdns = createMdns({ interface: link.address, bind: '0.0.0.0' } as multicastDns.Options);
      this.#mdns = mdns;
      mdns.on('error', (error) => this.#fail(`port ${PORT} cannot be used (${error.message})`));
      mdns.on('warning', (error) =>
        log.debug({ reason: error.message }, 'packet of multicast DNS not understood'),
      );
      mdns.on('response', (packet, from) => this.#hear(packet, from));
      for (let probe = 0; probe < PROBES; probe += 1) {
        mdns.query({
          questions: [...new Set(this.#records.unique.map(({ name }) => name))].map((name) => ({
            name,
            type: 'ANY' as never,
          })),
        });
        await clock.sleep(PROBE_MS, this.#end.signal);
      }
      mdns.on('query', (packet, from) => this.#answer(packet, from));
      for (const ms of ANNOUNCEMENTS_AFTER_MS) {
        await clock.sleep(ms, this.#end.signal);
        this.#say(this.#records.all);
        this.#isAnnounced = true;
      }
    } catch (error) {
      if (!this.#end.signal.aborted) this.#fail((error as Error).message);
    }
  }

  /** Withdraws the announcement. */
  async close(): Promise<void> {
    this.#end.abort();
    const mdns = this.#mdns;
    this.#mdns = undefined;
    if (!mdns) return;
    if (this.#isAnnounced)
      await new Promise<void>((resolve) =>
        mdns.respond({ answers: this.#records.all.map((record) => ({ ...record, ttl: 0 })) }, () =>
          resolve(),
        ),
      );
    this.#isAnnounced = false;
    await new Promise<void>((resolve) => mdns.destroy(() => resolve()));
  }

  #say(answers: readonly Record[]): void {
    this.#mdns?.respond({ answers: [...answers] });
  }

  #answer({ questions = [], answers = [], id }: QueryPacket, from: RemoteInfo): void {
    const reply = this.#network.check(from.address) ? replyTo(questions, answers, this.#records) : undefined;
    if (!reply) return;
    if (from.port === PORT)
      return this.#mdns?.respond({ answers: [...reply.answers], additionals: [...reply.additionals] });
    const plain = plainReply(reply);
    this.#mdns?.respond(
      { id: id ?? 0, questions, answers: [...plain.answers], additionals: [...plain.additionals] },
      from,
    );
  }

  /** The first machine keeps the name: later ones receive answers to their own probes. */
  #hear({ answers = [], additionals = [] }: ResponsePacket, { address }: RemoteInfo): void {
    if (
      this.#isAnnounced ||
      this.#end.signal.aborted ||
      ownAddresses().has(address) ||
      !this.#network.check(address)
    )
      return;
    if (isRival([...answers, ...additionals], this.#records))
      this.#fail(
        `the machine at ${address} goes by the name "${this.#options.name}" already; set plugins.discovery.name`,
      );
  }

  #fail(reason: string): void {
    this.#problem ??= reason;
    this.#end.abort();
  }
}
