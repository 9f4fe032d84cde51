/**
 * What a later daemon must know to adopt a process: one file per key, mode 0600, replaced atomically.
 * Records survive the daemon but not a reboot: a record of another boot is ignored.
 */
import { createHash } from 'node:crypto';
import { chmod, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from '../files/atomic-file.ts';
import { makeFolder } from '../files/make-folder.ts';
import type { Logger } from '../../contract/platform.ts';
import type { ProcessIdentity } from './proc-stat.ts';

export interface ProcessRecord extends ProcessIdentity {
  readonly version: 1;
  readonly key: string;
  readonly bootId: string;
  /**
   * Number and hash of the arguments, without the command: an interpreter or a wrapper may come before
   * them.
   */
  readonly argumentCount: number;
  readonly argumentsHash: string;
  readonly fingerprint: string;
  readonly notes: Readonly<Record<string, string | number>>;
  /** Where this process's output begins in its log file. */
  readonly logOffset: number;
}

export interface ProcessRecords {
  /** Creates the folder, for the owner alone. */
  prepare(): Promise<void>;
  /** Undefined when there is none or it is corrupt. Rejects when it cannot be read. */
  read(key: string): Promise<ProcessRecord | undefined>;
  /** The old record stays intact when this rejects. */
  write(record: ProcessRecord): Promise<void>;
  /** Removes the record if it still belongs to this process. */
  remove(record: ProcessRecord): Promise<void>;
  keys(prefix: string): Promise<readonly string[]>;
  logFile(key: string): string;
}

export function createProcessRecords(stateDir: string, log: Logger): ProcessRecords {
  const folder = join(stateDir, 'processes');
  const recordFile = (key: string): string => join(folder, `${fileStem(key)}.json`);
  const load = async (file: string): Promise<ProcessRecord | undefined> => {
    const text = await readFile(file, 'utf8').catch(ignoreMissing);
    if (text === undefined) return undefined;
    const record = parseRecord(text);
    if (record === undefined) {
      log.warn({ file }, 'a process record cannot be understood and is dropped');
      await rm(file, { force: true });
    }
    return record;
  };
  const read = async (key: string): Promise<ProcessRecord | undefined> => {
    const record = await load(recordFile(key));
    return record?.key === key ? record : undefined;
  };
  return {
    prepare: async () => {
      await makeFolder(folder);
      await chmod(folder, 0o700);
    },
    read,
    // No record is used after a loss of power, so no start waits for the disk.
    write: (record) =>
      writeWhole(recordFile(record.key), `${JSON.stringify(record)}\n`, { isDurable: false }),
    remove: async (record) => {
      const current = await read(record.key);
      if (current?.pid === record.pid && current.startTicks === record.startTicks)
        await rm(recordFile(record.key), { force: true });
    },
    keys: async (prefix) => {
      const names = (await readdir(folder).catch(ignoreMissing)) ?? [];
      const files = names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
      const records = await Promise.all(files.map(load));
      return records
        .flatMap((record) => (record?.key.startsWith(prefix) === true ? [record.key] : []))
        .toSorted();
    },
    logFile: (key) => join(folder, `${fileStem(key)}.log`),
  };
}

export function hashArguments(args: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(args)).digest('hex');
}

/**
 * Readable, safe and short for any key: file names have at most 255 bytes. The hash makes the name unique.
 */
function fileStem(key: string): string {
  const readable = key
    .replaceAll('/', '_')
    .replace(/[^A-Za-z0-9_.-]/g, '')
    .slice(0, 40)
    .replace(/^\.+/, '');
  const hash = createHash('sha256').update(Buffer.from(key, 'utf16le')).digest('hex').slice(0, 16);
  return `${readable === '' ? 'key' : readable}-${hash}`;
}

function parseRecord(text: string): ProcessRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Not JSON, so no record of ours.
    return undefined;
  }
  return isRecord(value) ? value : undefined;
}

function isRecord(value: unknown): value is ProcessRecord {
  if (typeof value !== 'object' || value === null) return false;
  const record = value as Partial<Record<keyof ProcessRecord, unknown>>;
  const texts = [record.key, record.bootId, record.startTicks, record.argumentsHash, record.fingerprint];
  const numbers = [record.pid, record.argumentCount, record.logOffset];
  return (
    record.version === 1 &&
    texts.every((text) => typeof text === 'string') &&
    numbers.every(isCount) &&
    Number(record.pid) > 1 &&
    typeof record.notes === 'object' &&
    record.notes !== null
  );
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}
