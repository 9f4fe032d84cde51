/**
 * Where log lines go: a file that can be reopened for rotation, or standard error. Each line is written
 * before the call returns, so that not even SIGKILL loses one. A full disk loses lines, but never stops the
 * daemon.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { pino } from 'pino';

type Destination = ReturnType<typeof pino.destination>;

export interface LogSink {
  write(line: string): void;
  reopen(): void;
  close(): void;
}

export interface FileSink extends LogSink {
  /** Number of the descriptor that lines go to now; undefined once it is closed. */
  readonly descriptor: number | undefined;
}

interface Opened {
  readonly descriptor: number;
  readonly destination: Destination;
}

const STDERR = 2;
const NO_FILE = 'it is no file; name one in log.file';
/** At most this much waits while lines cannot be written; after that, new lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576;

export function createStderrSink(): LogSink {
  const destination = writeTo(STDERR, () => undefined);
  return { write: (line) => void destination.write(line), reopen: () => undefined, close: () => undefined };
}

/** Throws a plain sentence when the file cannot be written. */
export function createFileSink(file: string): FileSink {
  let reported = false;
  const onError = (error: Error): void => {
    if (!reported) process.stderr.write(`mountkeeper: cannot write the log file ${file}: ${error.message}\n`);
    reported = true;
  };
  let opened: Opened | undefined = openFile(file, onError);
  return {
    get descriptor() {
      return opened?.descriptor;
    },
    write: (line) => void opened?.destination.write(line),
    reopen: () => {
      if (opened === undefined) return;
      // The old file is closed only when the new one is open.
      const next = openFile(file, onError);
      opened.destination.destroy();
      opened = next;
      reported = false;
    },
    close: () => {
      // Not flushed: every line that could be written has been, and on a full disk flushing would try for
      // ever.
      opened?.destination.destroy();
      opened = undefined;
    },
  };
}

function openFile(file: string, onError: (error: Error) => void): Opened {
  try {
    // Opening a named pipe without a reader would block the daemon for ever.
    // eslint-disable-next-line no-bitwise
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
    const descriptor = openSync(file, flags, 0o640);
    expectPlain(descriptor);
    return { descriptor, destination: writeTo(descriptor, onError) };
  } catch (cause) {
    throw new Error(`cannot write the log file ${file}: ${reasonOf(cause as NodeJS.ErrnoException)}`, {
      cause,
    });
  }
}

/** Accepts files, terminals and `/dev/null`; closes the descriptor of anything else. */
function expectPlain(descriptor: number): void {
  const found = fstatSync(descriptor);
  if (found.isFile() || found.isCharacterDevice()) return;
  closeSync(descriptor);
  throw new Error(NO_FILE);
}

function writeTo(descriptor: number, onError: (error: Error) => void): Destination {
  const destination = pino.destination({ dest: descriptor, sync: true, maxLength: MAX_WAITING_BYTES });
  destination.on('error', onError);
  return destination;
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'its folder does not exist; create it or change log.file';
    case 'EISDIR':
      return 'it is a folder; name a file in log.file';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied; change log.file or the rights of its folder';
    // A named pipe without a reader, or a socket.
    case 'ENXIO':
      return NO_FILE;
    case 'EROFS':
      return 'the file system is read-only; change log.file';
    default:
      return error.message;
  }
}
