/** An error and its causes on one line. */
export function sentence(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${sentence(error.cause)}`;
}
