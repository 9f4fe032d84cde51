/**
 * Short commands without a new child of this process for each: one shell stays open and starts them. A test process
 * is large, and each child of it begins as a copy of it, which takes longer than most of what mounts.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Shell {
  readonly requests: number;
  readonly answers: number;
}

const END = '\0';
let shell: Shell | undefined;

/** Ends with this process, when nobody writes to it any more. */
function open(): Shell {
  const room = mkdtempSync(join(tmpdir(), 'mk-shell-'));
  const [requests, answers] = [join(room, 'requests'), join(room, 'answers')];
  try {
    execFileSync('mkfifo', [requests, answers]);
    const script = 'exec sh <"$1" >"$2" 2>&1';
    spawn('sh', ['-c', script, 'sh', requests, answers], { stdio: 'ignore' }).unref();
    // Each waits for the shell's own end of it.
    return { requests: openSync(requests, 'w'), answers: openSync(answers, 'r') };
  } finally {
    rmSync(room, { recursive: true });
  }
}

/** Waits for the end of a command; throws with what it said when that is another than 0. */
export function runInShell(...command: readonly [string, ...string[]]): void {
  const { requests, answers } = (shell ??= open());
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  writeSync(requests, `${quoted} </dev/null; printf '%d\\0' $?\n`);
  const piece = Buffer.alloc(4_096);
  let said = '';
  while (!said.endsWith(END)) {
    const bytes = readSync(answers, piece);
    if (bytes === 0) throw new Error(`the shell has ended: ${quoted}`);
    said += piece.toString('utf8', 0, bytes);
  }
  if (said !== `0${END}`) throw new Error(`${quoted}: ${said.slice(0, -1)}`);
}
