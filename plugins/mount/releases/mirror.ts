/** Fetches from rclone's download site, or from a mirror of it. Nothing that comes from there is trusted. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from 'mountkeeper';
import type { Dispatcher, Response } from 'undici';

export interface MirrorOptions {
  /** Such as `https://downloads.rclone.org`. */
  readonly url: string;
  /** Empty: as the variables `https_proxy`, `http_proxy` and `no_proxy` say. */
  readonly proxy: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long it may send nothing; default 30 s. */
  readonly stallMs?: number;
}

export interface Mirror {
  /** Rejects with a sentence, also where it is larger. */
  text(path: string, mostBytes: number): Promise<string>;
  /** Writes what comes into `target`; resolves with its SHA-256. Rejects with a sentence. */
  file(path: string, target: FileHandle, options: FileOptions): Promise<string>;
  close(): Promise<void>;
}

export interface FileOptions {
  readonly mostBytes: number;
  /** `total` is what the mirror claims. */
  readonly onProgress: (bytes: number, total: number | undefined) => void;
}

const STALL_MS = 30_000;

export async function openMirror(options: MirrorOptions): Promise<Mirror> {
  const undici = await import('undici');
  const dispatcher: Dispatcher =
    options.proxy === '' ? new undici.EnvHttpProxyAgent() : new undici.ProxyAgent(options.proxy);
  const base = options.url.replace(/\/{1,100}$/, '');
  const ask = async <T>(path: string, take: (answer: Answer) => Promise<T>): Promise<T> => {
    const url = `${base}/${path}`;
    const silence = watchSilence(options);
    try {
      const response = await undici.fetch(url, { dispatcher, signal: silence.signal });
      if (!response.ok) throw new Refused(`${url} cannot be fetched: the server answers ${response.status}`);
      return await take({ response, moves: silence.moves });
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof Refused) throw error;
      const reason = silence.signal.aborted ? SILENT : reasonOf(error);
      throw new Error(`${url} cannot be fetched: ${reason}`, { cause: error });
    } finally {
      silence.end();
    }
  };
  return {
    text: (path, mostBytes) =>
      ask(path, async (answer) => {
        const pieces: Buffer[] = [];
        for await (const piece of piecesOf(answer, mostBytes)) pieces.push(piece);
        return Buffer.concat(pieces).toString('utf8');
      }),
    file: (path, target, { mostBytes, onProgress }) =>
      ask(path, async (answer) => {
        const length = Number(answer.response.headers.get('content-length') ?? Number.NaN);
        const hash = createHash('sha256');
        let bytes = 0;
        for await (const piece of piecesOf(answer, mostBytes)) {
          hash.update(piece);
          await target.writeFile(piece).catch(refuseToWrite);
          bytes += piece.length;
          onProgress(bytes, Number.isFinite(length) ? length : undefined);
        }
        return hash.digest('hex');
      }),
    close: () => dispatcher.destroy(),
  };
}

/** Its message says it all. */
class Refused extends Error {}

function refuseToWrite(error: unknown): never {
  throw new Refused(`it cannot be written: ${(error as Error).message}`, { cause: error });
}

interface Answer {
  readonly response: Response;
  /** Something has come. */
  readonly moves: () => void;
}

async function* piecesOf({ response, moves }: Answer, mostBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    moves();
    const buffer = Buffer.from(piece as Uint8Array);
    bytes += buffer.length;
    if (bytes > mostBytes) throw new Refused(`${response.url} is larger than ${mostBytes} bytes`);
    yield buffer;
  }
}

const SILENT = 'nothing comes any more';

interface Silence {
  /** Aborted with the caller's own, and when nothing has come for too long. */
  readonly signal: AbortSignal;
  moves(): void;
  end(): void;
}

/** Of a proxy that never answers, too: for that the library has no time limit. */
function watchSilence({ clock, signal, stallMs = STALL_MS }: MirrorOptions): Silence {
  const silent = new AbortController();
  const start = (): (() => void) =>
    clock.after(stallMs, () => silent.abort(new Error(SILENT)), { keepAlive: true });
  let cancel = start();
  return {
    signal: AbortSignal.any([signal, silent.signal]),
    moves: () => {
      cancel();
      cancel = start();
    },
    end: () => cancel(),
  };
}

/** fetch() hides the reason in the cause of its error. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  const { code, message: inner } = (cause ?? {}) as NodeJS.ErrnoException;
  return inner === undefined || inner === '' ? (code ?? message) : inner;
}
