/** What waits, over HTTP: `GET /api/queue`, `GET /api/queue/{share}`, `POST /api/queue/{share}/send`. */
import type { ServerRoute } from '@hapi/hapi';
import type { Conflict, QueueEntry, ShareUploads } from 'mountkeeper';

/** A longer queue is told by its figures. */
const MOST_ENTRIES = 1_000;

export interface QueueBody {
  readonly share: string;
  readonly dirty_files: number | null;
  readonly dirty_bytes: number | null;
  /** When the oldest change that the remote does not have was made; null when it has all. */
  readonly oldest_dirty_at: string | null;
  readonly stuck_files: number | null;
  /** At most 1,000. */
  readonly entries: readonly {
    readonly path: string;
    readonly action: string;
    readonly state: string;
    readonly bytes: number;
    readonly sent_bytes: number;
    readonly since: string;
    readonly reason: string;
    readonly tries: number;
    readonly next_try_at: string | null;
  }[];
  readonly conflicts: readonly { readonly path: string; readonly copy: string; readonly what: string; readonly at: string }[];
}

export function routes(shares: () => ReadonlyMap<string, ShareUploads>): ServerRoute[] {
  return [
    { method: 'GET', path: '/api/queue', handler: () => ({ shares: [...shares()].map(([name, uploads]) => bodyOf(name, uploads)) }) },
    {
      method: 'GET', path: '/api/queue/{share}',
      handler: (request, h) => {
        const name = String(request.params['share']);
        const uploads = shares().get(name);
        return uploads === undefined ? h.response().code(404) : bodyOf(name, uploads);
      },
    },
    {
      method: 'POST', path: '/api/queue/{share}/send',
      handler: (request) => {
        const name = String(request.params['share']);
        const uploads = shares().get(name);
        uploads?.flush();
        return uploads === undefined ? { ok: false, message: `Share '${name}' has nothing to send now` } : { ok: true, message: `Sending what waits in share '${name}'` };
      },
    },
  ];
}

function bodyOf(share: string, uploads: ShareUploads): QueueBody {
  const { figures } = uploads;
  return {
    share,
    dirty_files: figures?.dirtyFiles ?? null,
    dirty_bytes: figures?.dirtyBytes ?? null,
    oldest_dirty_at: timeOf(figures?.oldestDirtyAt),
    stuck_files: figures?.stuckFiles ?? null,
    entries: uploads.queue().slice(0, MOST_ENTRIES).map(entryOf),
    conflicts: uploads.conflicts().map(({ path, copy, what, at }: Conflict) => ({ path, copy, what, at: new Date(at).toISOString() })),
  };
}

function entryOf({ path, action, state, bytes, sentBytes, since, reason, tries, nextTryAt }: QueueEntry): QueueBody['entries'][number] {
  return { path, action, state, bytes, sent_bytes: sentBytes, since: new Date(since).toISOString(), reason, tries, next_try_at: timeOf(nextTryAt) };
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
