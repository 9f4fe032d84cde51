import { Transform } from 'node:stream';

/** All properties that backends report for a file; for a folder they report some of them. */
const NAMES = [
  'resourcetype',
  'displayname',
  'getcontentlength',
  'getlastmodified',
  'getcontenttype',
  'getetag',
  'supportedlock',
] as const;
/** A further property of backends that can store properties. */
const OWN = ['lastmodified'] as const;
const LONGEST_WISH_BYTES = 1_024;
const PROLOG = /^\s*(?:<\?xml[^>]*\?>)?/;
/** The two notations of the namespace, without and with a prefix. Any other request is forwarded as it is. */
const BARE = /^<propfind\s+xmlns\s*=\s*["']DAV:["']\s*>\s*<allprop\s*\/>\s*<\/propfind\s*>$/;
const PREFIXED =
  /^<(\w+):propfind\s+xmlns:\1\s*=\s*["']DAV:["']\s*>\s*<\1:allprop\s*\/>\s*<\/\1:propfind\s*>$/;

const ABSENT_END = '<D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>';
const PART = '<D:propstat>';
const ENTRY_END = '</D:response>';
/** No entry is longer: beyond this the answer has an unexpected form. */
const LONGEST_ENTRY_BYTES = 131_072;

/** Whether a client asks for all properties and nothing else. */
export function asksForAll(body: Buffer): boolean {
  if (body.length > LONGEST_WISH_BYTES) return false;
  const wish = body.toString('utf8').replace(PROLOG, '').trim();
  return body.length === 0 || BARE.test(wish) || PREFIXED.test(wish);
}

/**
 * The same request with explicit names. When asked for all, a backend opens each entry twice, once to find
 * the names.
 */
export function allByName(takesProperties: boolean): Buffer {
  const names = [...NAMES, ...(takesProperties ? OWN : [])].map((name) => `<D:${name}/>`);
  return Buffer.from(
    `<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>${names.join('')}</D:prop></D:propfind>`,
  );
}

/**
 * Removes the "not found" parts for properties that the client has not named, such as a folder's length.
 * File names cannot contain the text that is searched for.
 */
export class WithoutAbsent extends Transform {
  #held: Buffer = Buffer.alloc(0);

  override _transform(
    piece: Buffer,
    _encoding: BufferEncoding,
    done: (error: null, passed: Buffer) => void,
  ): void {
    done(null, this.#take(piece));
  }

  override _flush(done: (error: null, passed: Buffer) => void): void {
    done(null, this.#release(this.#held));
  }

  /** Returns what can be forwarded after this piece. */
  #take(piece: Buffer): Buffer {
    const all = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    const last = all.lastIndexOf(ENTRY_END);
    const end = last < 0 ? 0 : last + ENTRY_END.length;
    if (all.length - end > LONGEST_ENTRY_BYTES) return this.#release(all);
    this.#held = all.subarray(end);
    return withoutAbsent(all.subarray(0, end));
  }

  #release(all: Buffer): Buffer {
    this.#held = Buffer.alloc(0);
    return withoutAbsent(all);
  }
}

function withoutAbsent(entries: Buffer): Buffer {
  const kept: Buffer[] = [];
  let from = 0;
  for (let end = entries.indexOf(ABSENT_END); end >= 0; end = entries.indexOf(ABSENT_END, from)) {
    const start = entries.lastIndexOf(PART, end);
    const after = end + ABSENT_END.length;
    // Without its beginning it is not a part that we know.
    kept.push(entries.subarray(from, start < from ? after : start));
    from = after;
  }
  return kept.length === 0 ? entries : Buffer.concat([...kept, entries.subarray(from)]);
}
