/**
 * Who the requests that are being answered came from, but for those of the command socket. What somebody may do can
 * change while his request is under way: event streams and downloads last for days, and a body comes as slowly as its
 * sender likes.
 */
import type { Request } from '@hapi/hapi';
import type { Admitted } from './principals.ts';

/** Undefined: nobody was asked who it is. */
export type IsStill = (admitted: Admitted | undefined, request: Request) => boolean;

/** Read without changing anything, so they can be broken off. */
const READING: ReadonlySet<string> = new Set(['get', 'head']);

export class OpenRequests {
  readonly #isStill: IsStill;
  readonly #admitted = new WeakMap<Request, { readonly as: Admitted | undefined }>();
  readonly #reading = new Set<Request>();

  /** `isStill`: whether somebody who was let in would be let in now. */
  constructor(isStill: IsStill) {
    this.#isStill = isStill;
  }

  /** Undefined: nobody was asked who it is. */
  add(request: Request, admitted: Admitted | undefined): void {
    this.#admitted.set(request, { as: admitted });
    // Somebody who left while his password was checked: nothing more is said of that.
    if (!READING.has(request.method) || request.raw.res.closed) return;
    this.#reading.add(request);
    request.raw.res.once('close', () => this.#reading.delete(request));
  }

  /** How many can be broken off. */
  get size(): number {
    return this.#reading.size;
  }

  /** False: whoever sent it would not be let in any more. True of requests that were never added. */
  isStill(request: Request): boolean {
    const admitted = this.#admitted.get(request);
    return admitted === undefined || this.#isStill(admitted.as, request);
  }

  /** Ends the answers of those who read and would not be let in any more. */
  review(): void {
    for (const request of this.#reading) {
      if (this.isStill(request)) continue;
      if (request.app.endAnswer) request.app.endAnswer();
      else request.raw.req.socket.destroy();
    }
  }
}
