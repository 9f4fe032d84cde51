/**
 * The one kind of error for "no answer in time"; recognised by its name, like the platform's own
 * TimeoutError.
 */
export function timeoutError(message: string): Error {
  return new DOMException(message, 'TimeoutError');
}
