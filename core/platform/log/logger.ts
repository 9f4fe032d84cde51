/**
 * The daemon's log, on pino: whole lines for people, or JSON on request. Synchronous: each line has been
 * written when the call returns, so the last line before a crash is in the file and `/api/logs` sees it at
 * once.
 */
import { pino } from 'pino';
import type { Logger } from 'pino';
import { formatLine } from './log-line.ts';
import { createRedaction, maskAddresses } from './redaction.ts';
import { createFileSink, createStderrSink } from './log-sink.ts';
import type { FileSink, LogSink } from './log-sink.ts';
import { readableLog } from './log-file.ts';
import type { LogFileService } from '../../contract/platform.ts';

export interface LoggerOptions {
  /** Empty: log to standard error only. */
  readonly file: string;
  readonly level: string;
  readonly json: boolean;
  /** Further names of keys whose values are masked. */
  readonly redact?: readonly string[];
}

export interface LoggerHandle {
  readonly log: Logger;
  /** The file that lines go to, for readers. */
  readonly logFile: LogFileService;
  /** Reopens the file after it was renamed for rotation. When that fails, throws and keeps the old file. */
  reopen(): void;
  setLevel(level: string): void;
  close(): void;
}

export function createLogger(options: LoggerOptions): LoggerHandle {
  const fileSink = options.file === '' ? undefined : createFileSink(options.file);
  const sinks = allSinks(fileSink);
  const redact = createRedaction(options.redact);
  const write = (json: string): void => {
    // After serialisation, so that exactly what would be written is masked, however it came into the entry.
    const entry = redact(JSON.parse(json) as Record<string, unknown>);
    const line = maskAddresses(options.json ? `${JSON.stringify(entry)}\n` : formatLine(entry));
    for (const sink of sinks) sink.write(line);
  };
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
  return {
    log,
    logFile: readableLog(options.file, () => fileSink?.descriptor),
    reopen: () => sinks.forEach((sink) => sink.reopen()),
    setLevel: (level) => {
      log.level = level;
    },
    close: () => sinks.forEach((sink) => sink.close()),
  };
}

function allSinks(file: FileSink | undefined): LogSink[] {
  if (file === undefined) return [createStderrSink()];
  return process.stderr.isTTY ? [file, createStderrSink()] : [file];
}
