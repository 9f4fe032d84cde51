/** What the commands `verify` and `receipt` share: they begin work in the daemon and wait for its end. */
import type { CliContext } from 'mountkeeper';
import type { JobBody } from './proof/proof-jobs.ts';

const LOOK_MS = 500;
const FIRST_LOOK_MS = 50;

export interface ProofWork {
  readonly share: string;
  readonly verb: 'verify' | 'receipt';
  /** `''`: the whole share. */
  readonly path: string;
}

/** Shows how far it is. Undefined when the reason was printed. */
export async function ended<B extends JobBody>(
  { share, verb, path }: ProofWork,
  cli: CliContext,
): Promise<B | undefined> {
  const at = `/api/queue/${encodeURIComponent(share)}/${verb}`;
  const begun = await cli.request('POST', at, path === '' ? {} : { path });
  const { ok, message, id } = parsed(begun.body) as { ok?: boolean; message?: string; id?: string };
  if (ok !== true || id === undefined) {
    cli.printError(message ?? 'the answer of the daemon cannot be understood');
    return undefined;
  }
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MS)) {
    await cli.clock.sleep(waitMs, cli.signal);
    const { status, body } = await cli.request('GET', `${at}/${id}`);
    if (status !== 200) {
      cli.printError(`the daemon does not know this ${verb} any more: begin it again`);
      return undefined;
    }
    const answer = parsed(body) as B;
    if (answer.state !== 'running') return answer;
    cli.progress(`${answer.checked} of ${answer.files} files`);
  }
}

function parsed(body: string): object {
  try {
    return JSON.parse(body) as object;
  } catch {
    // Not an answer of the daemon.
    return {};
  }
}

/** A name is one line, whatever it holds. */
export function shownName(path: string): string {
  return path.replaceAll(/\p{Cc}/gu, '?');
}
