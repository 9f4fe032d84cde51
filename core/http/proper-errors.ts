/**
 * The web server takes hold of whatever a route throws: of what cannot be changed, or throws when it is looked at, it
 * makes an error that nobody catches, and leaves the request open.
 */
import { properError } from '../platform/log/thrown.ts';

/** What `work` gives; what it throws, or rejects with, is an error that anybody can handle. */
export function withProperErrors(work: () => unknown): unknown {
  try {
    const given = work();
    return given instanceof Promise ? given.catch(rethrow) : given;
  } catch (error) {
    return rethrow(error);
  }
}

function rethrow(error: unknown): never {
  throw properError(error);
}
