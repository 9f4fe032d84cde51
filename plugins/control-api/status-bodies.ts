/**
 * Bodies of the status routes: serialised once per snapshot, and compressed once per snapshot when a client
 * accepts it.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { ShareStatus, Snapshot, StatusOwners } from 'mountkeeper';
import { extensionsView, shareExtensionsView } from './extensions.ts';
import { shareView, statusView } from './status-view.ts';

const MIN_GZIP_BYTES = 1024;

export interface Body {
  /** ETag part that differs between snapshots, daemons and encodings. */
  readonly etag: string;
  readonly encoding: 'gzip' | undefined;
  readonly bytes: Buffer;
}

interface Entry {
  readonly plain: Body;
  zipped: Body | undefined;
}

export interface StatusBodies {
  /** With `only`, of these shares alone. */
  whole(gzip: boolean, only?: readonly string[]): Body;
  /** Undefined when the record has no share of that name. */
  share(name: string, gzip: boolean): Body | undefined;
  extensions(gzip: boolean): Body;
  /** As `share`. */
  shareExtensions(name: string, gzip: boolean): Body | undefined;
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

/** What the bodies are made of. */
export interface StatusSource {
  readonly snapshot: Snapshot;
  owners(): StatusOwners;
}

export function createStatusBodies(source: () => StatusSource): StatusBodies {
  let written: Snapshot | undefined;
  /** Of the snapshot that was written last, by what they tell. */
  const entries = new Map<string, Entry>();

  function refresh(): Snapshot {
    const next = source().snapshot;
    if (next !== written) {
      written = next;
      entries.clear();
    }
    return next;
  }

  function tagOf({ record, version }: Snapshot): string {
    return `${record.startedAt.toString(36)}-${version}`;
  }

  /** Made at the first question after each snapshot. Undefined where `view` is. */
  function body(key: string, gzip: boolean, view: (now: Snapshot) => unknown, of = ''): Body | undefined {
    const now = refresh();
    const known = entries.get(key);
    if (known) return encoded(known, gzip);
    const made = view(now);
    if (made === undefined) return undefined;
    const entry = entryOf(made, `${tagOf(now)}${of}`);
    entries.set(key, entry);
    return encoded(entry, gzip);
  }

  return {
    whole: (gzip, only) => {
      const of = only ? `-${digestOf(only)}` : '';
      return body(`status${of}`, gzip, (now) => statusView(now, only), of) as Body;
    },
    share: (name, gzip) =>
      body(`share ${name}`, gzip, (now) => {
        const share = shareIn(now, name);
        return share && shareView(share, now.takenAt);
      }),
    extensions: (gzip) => body('extensions', gzip, (now) => extensionsView(now, source().owners())) as Body,
    shareExtensions: (name, gzip) =>
      body(`extensions of ${name}`, gzip, (now) => {
        const share = shareIn(now, name);
        return share && shareExtensionsView(share, source().owners());
      }),
  };
}

/** Two clients that see other shares must not take each other's answer for their own. */
function digestOf(shares: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(shares)).digest('base64url').slice(0, 16);
}

function shareIn({ record }: Snapshot, name: string): ShareStatus | undefined {
  return record.shares.find((candidate) => candidate.name === name);
}
