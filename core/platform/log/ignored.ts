import type { Logger } from '../../contract/platform.ts';

/**
 * For `.catch()` of work that may fail without harm: logs at `debug` that `attempt` failed, and why.
 * Whoever investigates a fault finds it there; nobody else is disturbed.
 */
export function logIgnored(log: Logger, attempt: string, fields: object = {}): (error: unknown) => undefined {
  return (error) => {
    log.debug({ ...fields, attempt, err: error }, 'failed, and goes on without it');
    return undefined;
  };
}
