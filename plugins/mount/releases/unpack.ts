/** Takes the program out of rclone's zip archive. */
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { open as openArchive } from 'yauzl';
import type { Entry, Options, ZipFile } from 'yauzl';

const MOST_BYTES = 1_073_741_824;

const opened = promisify<string, Options, ZipFile>(openArchive);

/** Writes the archive's file `name` to `target` and onto the disk. Rejects with a sentence. */
export async function unpackProgram(archive: string, name: string, target: string): Promise<void> {
  const zip = await opened(archive, { lazyEntries: true, autoClose: false }).catch((cause: Error) => {
    throw new Error(`${archive} is not a whole zip archive: ${cause.message}`, { cause });
  });
  try {
    const entry = await entryOf(zip, name);
    if (!entry) throw new Error(`${archive} holds no ${name}`);
    if (entry.uncompressedSize > MOST_BYTES) throw new Error(`${name} in ${archive} is too large`);
    const content = await promisify<Entry, Readable>(zip.openReadStream.bind(zip))(entry);
    await pipeline(content, createWriteStream(target, { flags: 'wx', mode: 0o755, flush: true }));
  } finally {
    zip.close();
  }
}

function entryOf(zip: ZipFile, name: string): Promise<Entry | undefined> {
  return new Promise((resolve, reject) => {
    zip.on('error', reject);
    zip.on('end', () => resolve(undefined));
    zip.on('entry', (entry: Entry) => {
      if (entry.fileName === name) resolve(entry);
      else zip.readEntry();
    });
    zip.readEntry();
  });
}
