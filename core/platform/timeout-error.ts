/** The one kind of error for "no answer in time", recognised by its name as the platform's own is. */
export function timeoutError(message: string): Error {
  return new DOMException(message, 'TimeoutError');
}

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}
