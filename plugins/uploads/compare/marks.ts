/** Reads overlayfs' marks of folders from a tar archive in the POSIX format, which carries attributes as text records. */

const BLOCK = 512;
const OPAQUE = 'SCHILY.xattr.trusted.overlay.opaque';
const REDIRECT = 'SCHILY.xattr.trusted.overlay.redirect';

export interface Marks {
  readonly isOpaque?: boolean;
  /** From the share's root when it begins with a slash, else a name beside. */
  readonly redirect?: string;
}

/** Folder → its marks, for every folder in the archive. Paths are given as `./path`. */
export function marksIn(archive: string): Map<string, Marks> {
  const bytes = Buffer.from(archive, 'utf8');
  const found = new Map<string, Marks>();
  let records = new Map<string, string>();
  for (let at = 0; at + BLOCK <= bytes.length && bytes[at] !== 0;) {
    const size = parseInt(field(bytes, at + 124, 12), 8) || 0;
    const type = String.fromCharCode(bytes[at + 156] ?? 0);
    const next = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    if (type === 'x') records = recordsIn(bytes.subarray(at + BLOCK, at + BLOCK + size));
    else {
      const path = records.get('path') ?? headerPath(bytes, at);
      found.set(path.replace(/^\.\//, '').replace(/\/$/, ''), marksFrom(records));
      records = new Map();
    }
    at = next;
  }
  return found;
}

function marksFrom(records: ReadonlyMap<string, string>): Marks {
  const redirect = records.get(REDIRECT);
  return { isOpaque: records.get(OPAQUE) === 'y', ...(redirect !== undefined && { redirect }) };
}

function headerPath(bytes: Buffer, at: number): string {
  const prefix = field(bytes, at + 345, 155);
  const name = field(bytes, at, 100);
  return prefix === '' ? name : `${prefix}/${name}`;
}

function field(bytes: Buffer, at: number, length: number): string {
  const text = bytes.subarray(at, at + length);
  const end = text.indexOf(0);
  return text.subarray(0, end === -1 ? length : end).toString('utf8');
}

/** Records of the form `LENGTH KEY=VALUE\n`; the length counts the whole record in bytes. */
function recordsIn(bytes: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(bytes.subarray(at, space).toString('latin1'));
    if (space === -1 || !(length > 0)) break;
    const record = bytes.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(0x3d);
    found.set(record.subarray(0, equals).toString('utf8'), record.subarray(equals + 1).toString('utf8'));
    at += length;
  }
  return found;
}
