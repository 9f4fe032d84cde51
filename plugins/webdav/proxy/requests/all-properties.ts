import { Transform } from 'node:stream';

/** All that backends tell of a file; of a folder some of it. */
const NAMES = [
  'resourcetype',
  'displayname',
  'getcontentlength',
  'getlastmodified',
  'getcontenttype',
  'getetag',
  'supportedlock',
] as const;
/** What backends tell beside that who take properties. */
const OWN = ['lastmodified'] as const;
const LONGEST_WISH_BYTES = 1_024;
/**
 * In the two spellings that there are of a namespace, without and with a prefix. Whatever else a client says
 * goes to the backend as it is.
 */
const WISH =
  /^\s*(?:<\?xml[^>]*\?>\s*)?(?:<propfind\s+xmlns\s*=\s*["']DAV:["']\s*>\s*<allprop\s*\/>\s*<\/propfind\s*>|<(\w+):propfind\s+xmlns:\1\s*=\s*["']DAV:["']\s*>\s*<\1:allprop\s*\/>\s*<\/\1:propfind\s*>)\s*$/;

const ABSENT_END = '<D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>';
const PART = '<D:propstat>';
const ENTRY_END = '</D:response>';
/** No entry is as long: the answer is written in another way than it was. */
const LONGEST_ENTRY_BYTES = 131_072;

/** Whether a client wants to know all that there is to be told, and nothing else. */
export function asksForAll(body: Buffer): boolean {
  return body.length === 0 || (body.length <= LONGEST_WISH_BYTES && WISH.test(body.toString('utf8')));
}

/** The same question by names. Asked for all, an backend opens each entry twice: once for the names. */
export function allByName(takesProperties: boolean): Buffer {
  const names = [...NAMES, ...(takesProperties ? OWN : [])].map((name) => `<D:${name}/>`);
  return Buffer.from(
    `<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>${names.join('')}</D:prop></D:propfind>`,
  );
}

/**
 * Leaves out what the client has not asked for by name: that a folder has no length. Names of files cannot
 * hold what is looked for.
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

  /** What can be passed on now that this piece has come. */
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
    // Without its beginning it is no part of ours.
    kept.push(entries.subarray(from, start < from ? after : start));
    from = after;
  }
  return kept.length === 0 ? entries : Buffer.concat([...kept, entries.subarray(from)]);
}
