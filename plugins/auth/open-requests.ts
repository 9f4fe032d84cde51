/**
 * Requests that are being answered, but for those of the command socket. Event streams and downloads
 * may last for days, so what is being sent to somebody who may no longer see it ends at once.
 */
import type { Request } from '@hapi/hapi';
import type { Admitted } from './principals.ts';

/** Read without changing anything, so they can be broken off. */
const READING: ReadonlySet<string> = new Set(['get', 'head']);

export class OpenRequests {
  readonly #open = new Map<Request, Admitted | undefined>();

  /** Undefined: nobody was asked who it is. */
  add(request: Request, admitted: Admitted | undefined): void {
    // Somebody who left while his password was checked: nothing more is said of that.
    if (!READING.has(request.method) || request.raw.res.closed) return;
    this.#open.set(request, admitted);
    request.raw.res.once('close', () => this.#open.delete(request));
  }

  get size(): number {
    return this.#open.size;
  }

  /** Closes the connections of those for whom `isCurrent` is false. */
  review(isCurrent: (admitted: Admitted | undefined, request: Request) => boolean): void {
    for (const [request, admitted] of this.#open)
      if (!isCurrent(admitted, request)) request.raw.req.socket.destroy();
  }
}
