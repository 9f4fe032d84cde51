/** The set-up in the running daemon, over its socket or the address that the user named. */
import type { CliContext, FoundNas } from 'mountkeeper';
import type { AppliedAnswer, FoldersAnswer, ReviewAnswer, SetupCalls } from '../requests.ts';

/** Passwords of the NAS and of the LAN are among the answers; the first call, before any question, is held to it. */
const PRIVATE = { isPrivate: true } as const;

export function remoteCalls(cli: CliContext): SetupCalls {
  const get = async (path: string): Promise<Readonly<Record<string, unknown>>> => {
    const { status, body } = await cli.request('GET', path, undefined, PRIVATE);
    if (status !== 200) throw new Error(problemOf(status, body));
    return JSON.parse(body) as Readonly<Record<string, unknown>>;
  };
  const post = async <T>(path: string, given: unknown): Promise<T> => {
    const { status, body } = await cli.request('POST', path, given, PRIVATE);
    if (status !== 200) throw new Error(problemOf(status, body));
    return JSON.parse(body) as T;
  };
  return {
    present: async () => (await get('/api/setup'))['shares'] as readonly string[],
    found: async () => (await get('/api/setup/found'))['found'] as readonly FoundNas[],
    folders: (request) => post<FoldersAnswer>('/api/setup/folders', request),
    review: (answers) => post<ReviewAnswer>('/api/setup/check', answers),
    apply: (answers) => post<AppliedAnswer>('/api/setup', answers),
  };
}

function problemOf(status: number, body: string): string {
  if (status === 404) return 'the plugin "setup" is off in the running daemon, or it is an older one';
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Not JSON: only the status code can be shown.
  }
  return `the daemon answered with status ${status}`;
}
