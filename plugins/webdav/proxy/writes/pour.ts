import type { ClientRequest, IncomingMessage } from 'node:http';

/** Where a body goes, besides the backend. */
export interface Pouring {
  /** Of what has come, in bytes. */
  readonly onPiece: (bytes: number) => void;
  /** Of what has gone on to the backend. */
  readonly onPassed: (bytes: number) => void;
  /** Aborts when the upload must be undone. */
  readonly stop: AbortSignal;
}

/**
 * Resolves with true when the client has sent everything. Ends early when the backend closes the
 * connection, or on `stop`.
 */
export function pour(
  from: IncomingMessage,
  to: ClientRequest,
  { onPiece, onPassed, stop }: Pouring,
): Promise<boolean> {
  return new Promise((resolve) => {
    // Data that was received but not read is lost with the connection.
    if (from.destroyed || stop.aborted) return resolve(false);
    let isOver = false;
    const finish = (isWhole: boolean): void => {
      isOver = true;
      stop.removeEventListener('abort', cut);
      resolve(isWhole);
    };
    const cut = (): void => finish(false);
    stop.addEventListener('abort', cut, { once: true });
    from.on('data', (piece: Buffer) => {
      onPiece(piece.length);
      if (isOver || to.destroyed) return;
      onPassed(piece.length);
      if (to.write(piece)) return;
      from.pause();
      to.once('drain', () => from.resume());
    });
    from.once('end', () => finish(from.complete));
    from.once('close', () => finish(false));
    to.once('response', () => finish(false));
    to.once('close', () => finish(false));
  });
}
