/**
 * Bodies of the status routes: written once per snapshot, compressed once per snapshot when someone takes it
 * so.
 */
import { gzipSync } from 'node:zlib';
import type { Snapshot } from 'mountkeeper';
import { shareView, statusView } from './status-view.ts';

const MIN_GZIP_BYTES = 1024;

export interface Body {
  /** Differs between snapshots, daemons and encodings. */
  readonly etag: string;
  readonly encoding: 'gzip' | undefined;
  readonly bytes: Buffer;
}

interface Entry {
  readonly plain: Body;
  zipped: Body | undefined;
}

export interface StatusBodies {
  whole(gzip: boolean): Body;
  /** Undefined when the record has no share of that name. */
  share(name: string, gzip: boolean): Body | undefined;
}

function entryOf(view: unknown, tag: string): Entry {
  return {
    plain: { etag: tag, encoding: undefined, bytes: Buffer.from(JSON.stringify(view)) },
    zipped: undefined,
  };
}

function encoded(entry: Entry, gzip: boolean): Body {
  if (!gzip || entry.plain.bytes.length < MIN_GZIP_BYTES) return entry.plain;
  entry.zipped ??= { etag: `${entry.plain.etag}-gzip`, encoding: 'gzip', bytes: gzipSync(entry.plain.bytes) };
  return entry.zipped;
}

export function createStatusBodies(snapshot: () => Snapshot): StatusBodies {
  let written: Snapshot | undefined;
  let whole: Entry | undefined;
  const shares = new Map<string, Entry>();

  function refresh(): Snapshot {
    const next = snapshot();
    if (next !== written) {
      written = next;
      whole = undefined;
      shares.clear();
    }
    return next;
  }

  function tagOf({ record, version }: Snapshot): string {
    return `${record.startedAt.toString(36)}-${version}`;
  }

  return {
    whole(gzip) {
      const now = refresh();
      whole ??= entryOf(statusView(now), tagOf(now));
      return encoded(whole, gzip);
    },
    share(name, gzip) {
      const now = refresh();
      const known = shares.get(name);
      if (known) return encoded(known, gzip);
      const share = now.record.shares.find((candidate) => candidate.name === name);
      if (!share) return undefined;
      const entry = entryOf(shareView(share, now.takenAt), tagOf(now));
      shares.set(name, entry);
      return encoded(entry, gzip);
    },
  };
}
