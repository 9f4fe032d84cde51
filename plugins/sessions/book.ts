/** Asks every exporter who is connected, for all who want to know. */
import { timeBox } from 'mountkeeper';
import type { ClientSession, Clock, ExportersService } from 'mountkeeper';

/** A server's own tools take some hundredths of a second of the processor. */
const KEEP_MS = 3_000;
const ANSWER_MS = 10_000;

export interface ListedSession extends ClientSession {
  /** With the protocol before it: names the session among all of them. */
  readonly id: string;
  readonly protocol: string;
  readonly canEnd: boolean;
}

/** What is known of one protocol's sessions. */
export interface ProtocolSessions {
  readonly protocol: string;
  /** Undefined: they are all known. */
  readonly problem?: string;
  readonly sessions: readonly ListedSession[];
}

/** `ended`: it is gone. `unknown`: it was gone before. Else a sentence. */
export interface Ending {
  readonly result: 'ended' | 'unknown' | { readonly problem: string };
  /** What is to be written down of it. */
  readonly about: Readonly<Record<string, string>>;
}

export interface BookTools {
  readonly clock: Clock;
  readonly exporters: ExportersService;
}

type Listed = ReturnType<ExportersService['list']>[number];

interface Look {
  readonly found: Promise<readonly ProtocolSessions[]>;
  /** When the last server answered, on the monotonic clock; undefined: one has not yet. */
  at?: number;
}

export class SessionBook {
  readonly #tools: BookTools;
  #look: Look | undefined;
  #known: { readonly at: number; readonly found: readonly ProtocolSessions[] } | undefined;

  constructor(tools: BookTools) {
    this.#tools = tools;
  }

  /** What the last look found, for those who cannot wait; undefined when it is older than `ms`. */
  knownFor(ms: number): readonly ProtocolSessions[] | undefined {
    const { at = -Infinity, found } = this.#known ?? {};
    return this.#tools.clock.monotonic() - at > ms ? undefined : found;
  }

  /** Never rejects. Who asks while the servers are being asked waits for the same answers. */
  list(): Promise<readonly ProtocolSessions[]> {
    const { clock } = this.#tools;
    const { at = Infinity, found } = this.#look ?? {};
    if (found && clock.monotonic() - at < KEEP_MS) return found;
    const look: Look = { found: this.#ask() };
    this.#look = look;
    void look.found.then((all) => {
      look.at = clock.monotonic();
      this.#known = { at: look.at, found: all };
    });
    return look.found;
  }

  /** `id` as listed. Never rejects, and asks no other server than its own. */
  async end(id: string): Promise<Ending> {
    const [protocol = '', own = ''] = splitId(id);
    const found = this.#tools.exporters.list().find((one) => one.protocol === protocol);
    if (!found) return { result: 'unknown', about: {} };
    const { sessions } = await this.#sessionsOf(found);
    const about = aboutOf(sessions.find((one) => one.id === id));
    return { about, result: await this.#end(found, own) };
  }

  async #end({ protocol, exporter }: Listed, id: string): Promise<Ending['result']> {
    if (!exporter.endSession) return { problem: noEnd(protocol) };
    try {
      const isEnded = await timeBox(this.#tools.clock, ANSWER_MS, exporter.endSession(id));
      this.#look = undefined;
      return isEnded ? 'ended' : 'unknown';
    } catch (error) {
      return { problem: (error as Error).message };
    }
  }

  #ask(): Promise<readonly ProtocolSessions[]> {
    const all = this.#tools.exporters.list().filter(({ exporter }) => exporter.isEnabled !== false);
    return Promise.all(all.map((one) => this.#sessionsOf(one)));
  }

  async #sessionsOf({ protocol, exporter }: Listed): Promise<ProtocolSessions> {
    if (!exporter.sessions) return { protocol, problem: 'it does not tell who is connected', sessions: [] };
    try {
      const sessions = await timeBox(this.#tools.clock, ANSWER_MS, exporter.sessions());
      const canEnd = exporter.endSession !== undefined;
      return {
        protocol,
        sessions: sessions.map((one) => ({ ...one, id: `${protocol}:${one.id}`, protocol, canEnd })),
      };
    } catch (error) {
      return { protocol, problem: (error as Error).message, sessions: [] };
    }
  }
}

/** Where the client would go on by its next connection, only the configuration shuts it out. */
function noEnd(protocol: string): string {
  return (
    `a session of ${protocol} cannot be ended from here; whom the configuration no longer lets in is out at once, ` +
    'in what is open, too'
  );
}

function aboutOf(session: ListedSession | undefined): Readonly<Record<string, string>> {
  if (!session) return {};
  const { protocol, user, address, shares } = session;
  return { protocol, user: user ?? '', address, shares: (shares ?? []).join(', ') };
}

function splitId(id: string): readonly string[] {
  const at = id.indexOf(':');
  return at < 0 ? [] : [id.slice(0, at), id.slice(at + 1)];
}

/** What a token of these shares may know: of others nothing, and no bytes that may be of others. */
export function withinShares(
  all: readonly ProtocolSessions[],
  shares: readonly string[] | undefined,
): readonly ProtocolSessions[] {
  if (shares === undefined) return all;
  return all.map((one) => ({
    ...one,
    sessions: one.sessions.flatMap((session) => {
      const own = (session.shares ?? []).filter((share) => shares.includes(share));
      if (own.length === 0) return [];
      if (own.length === session.shares?.length) return [session];
      return [
        { ...session, shares: own, since: null, lastAt: null, bytesToClient: null, bytesFromClient: null },
      ];
    }),
  }));
}
