import type { RcClient } from './control/remote-control.ts';
import { remoteFailure, silence } from './error-messages.ts';

/** Requested by name, so that the answer never comes from a cached listing; no real file has this name. */
const CHECKED_NAME = '.mountkeeper-reachable';

/** The lightest call that needs the remote. Its errors say what they show about the remote. */
export async function askRemote(rc: RcClient, fs: string, signal: AbortSignal): Promise<void> {
  try {
    await rc.call('operations/stat', { fs, remote: CHECKED_NAME, opt: { filesOnly: true } }, signal);
  } catch (error) {
    if (signal.aborted) throw silence(error);
    throw remoteFailure([(error as Error).message], 'the remote answers with an error', { cause: error });
  }
}
