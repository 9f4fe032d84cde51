/**
 * What the daemon and a runner (the process of strangers' plugins) say to each other over a socket: each
 * message is JSON behind its length, four bytes, the highest first. A message that is too long ends the
 * runner.
 */
import type { Writable } from 'node:stream';

/** Longest message, in bytes: a route's answer of 1 MiB in base64, and what is around it. */
export const MOST_MESSAGE_BYTES = 1_572_864;
/** Longest body of a request and of an answer, in bytes. */
export const MOST_BODY_BYTES = 1_048_576;
const HEADER_BYTES = 4;

/** Services that the runner has a likeness of. */
export const CARRIED_SERVICES: ReadonlySet<string> = new Set([
  'clock',
  'paths',
  'store',
  'status',
  'shares',
  'config',
  'secrets',
]);
/** Commands whose arguments are plain data. */
export const CARRIED_COMMANDS: ReadonlySet<string> = new Set(['bwlimit', 'reconnect', 'notify']);
export const CARRIED_HOOKS: ReadonlySet<string> = new Set([
  'beforeMount',
  'afterMount',
  'afterUnmount',
  'shareHealthChanged',
  'notification',
  'afterCycle',
  'resolveBandwidth',
  'collectShareLimits',
  'collectShareTroubles',
  'collectNotices',
]);

export const VOUCH = 'if you trust it, set isolation = "none" in its table of the file';

/** Something that cannot be carried. The message is a whole sentence. */
export class NotCarried extends Error {
  constructor(what: string, why: string) {
    super(`it cannot run in a process of its own: ${what} cannot be carried, ${why}; ${VOUCH}`);
  }
}

/** One `ctx.tap` and so on, by its place in the ledger. */
export type CallKind = 'tap' | 'handle' | 'route' | 'tab' | 'format' | 'event';

export interface RouteRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In base64. */
  readonly body: string;
  readonly remoteAddress: string;
}

export interface RouteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** In base64. */
  readonly body: string;
}

/** A value that was read, or why it could not be. */
export type Read = { readonly value?: unknown } | { readonly problem: string };

/** What the plugin's functions last gave, in the order of its ledger. */
export interface State {
  readonly status: readonly Read[];
  /** For each `ctx.shareStatus`: fields by share. */
  readonly shareStatus: readonly Readonly<Record<string, Read>>[];
  readonly metrics: readonly Read[];
  /** Sentences about its runs that take long. */
  readonly late?: readonly string[];
}

/** The daemon as the runner's services show it; each part is sent when it has changed. */
export interface DaemonSnapshot {
  readonly snapshot?: unknown;
  readonly notices?: unknown;
  readonly shares?: unknown;
  /** The whole configuration, secrets masked. */
  readonly config?: unknown;
  /** What the references in the plugin's own section stand for. */
  readonly secrets?: readonly ResolvedSecret[];
}

/** A reference with its clear text, or the sentence why there is none. */
export type ResolvedSecret = { readonly reference: object } & (
  { readonly value: string } | { readonly problem: string }
);

/** Which plugin it is about, where several share the process; left out where there is one. */
export interface Seated {
  readonly seat?: number;
}

export interface Begin {
  /** Absolute path of the plugin's entry. */
  readonly entry: string;
  /** Where its copy lies: by what is below, an error is laid at its door. */
  readonly folder: string;
  readonly name: string;
  /** What its package.json says. */
  readonly declared: unknown;
  /** `declare`: says what it declares, and ends; `migrate`: gives `config` in its new form, and ends. */
  readonly task: 'declare' | 'migrate' | 'run';
  readonly config: object;
  readonly paths: { readonly stateDir: string; readonly packageDir: string };
  readonly logLevel: string;
  readonly world: DaemonSnapshot;
}

export type ToRunner =
  | ({ readonly is: 'begin' } & Begin & Seated)
  | ({
      readonly is: 'call';
      readonly id: number;
      readonly kind: CallKind;
      readonly index: number;
      readonly args: readonly unknown[];
    } & Seated)
  | ({
      readonly is: 'answer';
      readonly id: number;
      readonly value?: unknown;
      readonly problem?: string;
    } & Seated)
  | ({ readonly is: 'config'; readonly config: object } & Seated)
  | ({ readonly is: 'log-level'; readonly level: string } & Seated)
  | ({ readonly is: 'world'; readonly world: DaemonSnapshot } & Seated)
  | { readonly is: 'ping' }
  /** One plugin goes, the process stays. */
  | ({ readonly is: 'leave'; readonly reason: string } & Seated)
  | { readonly is: 'end'; readonly reason: string };

/** As the plugin's own part of the process says it. */
export type Said =
  | { readonly is: 'declared'; readonly declaration: unknown }
  | { readonly is: 'migrated'; readonly table: unknown }
  | { readonly is: 'refused'; readonly reason: string }
  | { readonly is: 'up' }
  | { readonly is: 'failed'; readonly reason: string }
  | ({ readonly is: 'state' } & State)
  | { readonly is: 'answer'; readonly id: number; readonly value?: unknown; readonly problem?: string }
  | { readonly is: 'send'; readonly id: number; readonly command: string; readonly args: readonly unknown[] }
  /** One of its own events, by its place in the ledger. */
  | { readonly is: 'event'; readonly index: number; readonly value: unknown }
  | { readonly is: 'log'; readonly level: string; readonly message: string; readonly fields: object }
  /** It has gone, by `leave`. */
  | { readonly is: 'left' };

export type FromRunner =
  | (Said & Seated)
  | { readonly is: 'pong' }
  /** The last word of a runner that ends by itself; `by`: the plugin whose code the stack shows. */
  | { readonly is: 'broke'; readonly reason: string; readonly by?: string };

/** As they were before the plugin came: what it makes of them must not break the line. */
const { parse, stringify } = JSON;

/** JSON of what several runners are told alike: it is never changed. */
const shared = new WeakMap<object, Buffer>();

/** Made once, also for messages with this value in them: a status is long, and goes to all runners. */
export function sharedJson(value: object): Buffer {
  const bytes = shared.get(value) ?? Buffer.from(stringify(value));
  shared.set(value, bytes);
  return bytes;
}

type Piece = string | Buffer;

function piecesOf(message: ToRunner | FromRunner): readonly Piece[] {
  if (message.is === 'world') {
    const { world, ...rest } = message;
    const parts = Object.entries(world).filter(([, part]) => part !== undefined);
    const pieces = parts.flatMap(([name, part], at) => [`${comma(at)}${stringify(name)}:`, pieceOf(part)]);
    return [`${unclosed(rest)},"world":{`, ...pieces, '}}'];
  }
  if (message.is === 'call') {
    const { args, ...rest } = message;
    return [`${unclosed(rest)},"args":[`, ...args.flatMap((part, at) => [comma(at), pieceOf(part)]), ']}'];
  }
  return [stringify(message)];
}

function pieceOf(part: unknown): Piece {
  const known = typeof part === 'object' && part !== null ? shared.get(part) : undefined;
  // As in a list: what JSON does not know is null.
  return known ?? (stringify(part) as string | undefined) ?? 'null';
}

function unclosed(message: { readonly is: string }): string {
  return stringify(message).slice(0, -1);
}

function comma(at: number): string {
  return at === 0 ? '' : ',';
}

/** A message with its length in front, in pieces where some are shared. */
function framed(message: ToRunner | FromRunner): readonly Buffer[] {
  const body: Buffer[] = [];
  let text = '';
  for (const piece of piecesOf(message)) {
    if (typeof piece === 'string') text += piece;
    else {
      body.push(Buffer.from(text), piece);
      text = '';
    }
  }
  body.push(Buffer.from(text));
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  if (length > MOST_MESSAGE_BYTES)
    throw new Error(`it is larger than ${MOST_MESSAGE_BYTES} bytes (${length})`);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(length);
  return [header, ...body];
}

/** A message with its length in front. Throws for what is no JSON, and for what is too long. */
export function frame(message: ToRunner | FromRunner): Buffer {
  return Buffer.concat(framed(message));
}

/** The other side has sent what is no message. */
export class BrokenProtocol extends Error {}

/**
 * Takes bytes as they come, gives whole messages. Throws a `BrokenProtocol` for one that is too long, is no
 * JSON or has no kind; nothing more may be given to it then.
 */
export class FrameReader {
  #chunks: Buffer[] = [];
  #held = 0;

  read(chunk: Buffer): readonly { readonly is: string }[] {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    const messages: { readonly is: string }[] = [];
    for (let body = this.#next(); body; body = this.#next()) messages.push(messageIn(body));
    return messages;
  }

  #next(): Buffer | undefined {
    if (this.#held < HEADER_BYTES) return undefined;
    if ((this.#chunks[0] as Buffer).length < HEADER_BYTES) this.#join();
    const length = (this.#chunks[0] as Buffer).readUInt32BE();
    if (length > MOST_MESSAGE_BYTES) throw new BrokenProtocol(`it sent a message of ${length} bytes`);
    const end = HEADER_BYTES + length;
    if (this.#held < end) return undefined;
    this.#join();
    const all = this.#chunks[0] as Buffer;
    this.#chunks = end < all.length ? [all.subarray(end)] : [];
    this.#held -= end;
    return all.subarray(HEADER_BYTES, end);
  }

  #join(): void {
    this.#chunks = [Buffer.concat(this.#chunks)];
  }
}

function messageIn(body: Buffer): { readonly is: string } {
  let message: unknown;
  try {
    message = parse(body.toString());
  } catch {
    // Where it breaks off is nobody's business.
    throw new BrokenProtocol('it sent a message that is no JSON');
  }
  if (typeof (message as { is?: unknown } | null)?.is !== 'string')
    throw new BrokenProtocol('it sent a message of no kind');
  return message as { readonly is: string };
}

/** Longest reason that is shown, in characters. */
const MOST_REASON = 1_000;

/** A text out of a message. Nothing else is made into one: what was sent may refuse that. */
export function textOf(sent: unknown, most = MOST_REASON): string {
  return typeof sent === 'string' ? sent.slice(0, most) : 'it gave no text';
}

/** Who does not read what is sent has this much waiting at most, in bytes. */
const MOST_WAITING_BYTES = 4 * MOST_MESSAGE_BYTES;

/** False when the other side is gone, or has not read what was sent before. Throws as `frame` does. */
export function sendTo(stream: Writable, message: ToRunner | FromRunner): boolean {
  if (stream.destroyed || !stream.writable || stream.writableLength > MOST_WAITING_BYTES) return false;
  const pieces = framed(message);
  // A long one is not copied for each runner.
  const isShared = pieces.length > 2;
  if (isShared) stream.cork();
  for (const piece of isShared ? pieces : [Buffer.concat(pieces)]) stream.write(piece);
  if (isShared) stream.uncork();
  return true;
}
