import type { Readable, Writable } from 'node:stream';

/** Of one answer in one turn of the event loop: hundreds of clients who ask at once let nobody wait until the buffers of all are full. */
export const TURN_BYTES = 262_144;

/** Changes a body on its way. */
export interface Rewrite {
  /** What can be passed on now that this piece has come. */
  take(piece: Buffer): Buffer;
  /** What is left at the end. */
  rest(): Buffer;
}

/** Passes a whole body on, as fast as it is taken. Who it comes from must be destroyed when who it goes to closes. */
export function pump(from: Readable, to: Writable, rewrite?: Rewrite): void {
  let bytesInTurn = 0;
  const goOn = (): void => {
    bytesInTurn = 0;
    from.resume();
  };
  from.on('data', (piece: Buffer) => {
    bytesInTurn += piece.length;
    const passed = rewrite ? rewrite.take(piece) : piece;
    const isFull = passed.length > 0 && !to.write(passed);
    if (!isFull && bytesInTurn < TURN_BYTES) return;
    from.pause();
    if (isFull) to.once('drain', goOn);
    else setImmediate(goOn);
  });
  from.once('end', () => {
    const rest = rewrite?.rest();
    if (rest !== undefined && rest.length > 0) to.write(rest);
    to.end();
  });
}
