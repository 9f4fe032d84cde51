/**
 * The daemon's log, on pino: whole lines for people, or JSON on request. Synchronous: each line has been
 * written when the call returns, so the last line before a crash is in the file and `/api/logs` sees it at
 * once.
 */
import { pino } from 'pino';
import type { Logger } from 'pino';
import { formatLine } from './log-line.ts';
import { loggedError } from './logged-error.ts';
import { createRedaction, maskAddresses } from './redaction.ts';
import { createFileSink, createStderrSink } from './log-sink.ts';
import type { FileSink, LogSink } from './log-sink.ts';
import { readableLog } from './log-file.ts';
import { createClock } from '../clock.ts';
import { StrangerLines } from './stranger-lines.ts';
import type { Clock, LogFileService } from '../../contract/platform.ts';

const LEFT_OUT = 'there is too much to log of the plugin; lines were left out';

export interface LoggerOptions {
  /** Empty: log to standard error only. */
  readonly file: string;
  readonly level: string;
  readonly json: boolean;
  /** Further names of keys whose values are masked. */
  readonly redact?: readonly string[];
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, 'monotonic'>;
}

export interface LoggerHandle {
  readonly log: Logger;
  /** The file that lines go to, for readers. */
  readonly logFile: LogFileService;
  /** Reopens the file after it was renamed for rotation. When that fails, throws and keeps the old file. */
  reopen(): void;
  setLevel(level: string): void;
  /** Of plugins of which this is true no more than so many lines are written, whoever writes them. */
  limit(isStranger: (plugin: string) => boolean): void;
  close(): void;
}

export function createLogger(options: LoggerOptions): LoggerHandle {
  const fileSink = options.file === '' ? undefined : createFileSink(options.file);
  const sinks = allSinks(fileSink);
  const redact = createRedaction(options.redact);
  const strangers = new StrangerLines(options.clock ?? createClock());
  const put = (given: Record<string, unknown>): void => {
    // After serialisation, so that exactly what would be written is masked, however it came into the entry.
    const entry = redact(given);
    const line = maskAddresses(options.json ? `${JSON.stringify(entry)}\n` : formatLine(entry));
    for (const sink of sinks) sink.write(line);
  };
  const write = (json: string): void => {
    const entry = JSON.parse(json) as Record<string, unknown>;
    const { plugin, time } = entry;
    const leftOut = typeof plugin === 'string' ? strangers.take(plugin, json.length) : 0;
    if (leftOut === undefined) return;
    if (leftOut > 0) put({ level: 'warn', time, plugin, lines: leftOut, msg: LEFT_OUT });
    put(entry);
  };
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: loggedError },
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
    limit: (isStranger) => {
      strangers.isStranger = isStranger;
    },
    close: () => sinks.forEach((sink) => sink.close()),
  };
}

function allSinks(file: FileSink | undefined): LogSink[] {
  if (file === undefined) return [createStderrSink()];
  return process.stderr.isTTY ? [file, createStderrSink()] : [file];
}
