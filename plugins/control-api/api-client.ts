/** Reads the daemon's answers for the subcommands. */
import type { CliContext } from 'mountkeeper';
import type { StatusView } from './status-view.ts';

export interface CommandResult {
  readonly ok: boolean;
  readonly message: string;
}

/** The daemon answered, but without what was requested. */
export function problemOf(body: string, status: number): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    if (typeof message === 'string') return message;
  } catch {
    // Not JSON: only the status code can be shown.
  }
  return `the daemon answered with status ${status}`;
}

export async function fetchStatus(
  cli: CliContext,
): Promise<{ readonly view: StatusView; readonly text: string }> {
  const { status, body } = await cli.request('GET', '/api/status');
  if (status !== 200) throw new Error(problemOf(body, status));
  return { view: JSON.parse(body) as StatusView, text: body };
}

export async function sendCommand(cli: CliContext, path: string, body?: unknown): Promise<CommandResult> {
  const answer = await cli.request('POST', path, body);
  if (answer.status !== 200) return { ok: false, message: problemOf(answer.body, answer.status) };
  return JSON.parse(answer.body) as CommandResult;
}
