import type { MountTools } from './tools.ts';

/** A file is made shorter if it is as it was found, and nobody else has it open. */
export interface SoleCut {
  /** As long as it is to be, and as long as it was found. */
  readonly bytes: number;
  readonly foundBytes: number;
  /** rclone's record of the file, and pieces of it that still have to be there. */
  readonly record: string;
  readonly has: readonly string[];
  /** Of a file of the cache: this one instead of the mounted one, which keeps its time, where a small perl only to the second. */
  readonly inCache?: { readonly file: string; readonly modified: string } | undefined;
}

export type CutOutcome = 'cut' | 'open elsewhere' | 'changed';

const TIMEOUT_MS = 10_000;
const CHANGED = 65;
const OPEN_ELSEWHERE = 75;

/**
 * Under a write lease, which the kernel gives only to one that alone has the file open; whoever opens it meanwhile waits for it to end.
 * Where the kernel has no leases for mounts, what is compared right before has to do; in the cache nothing is done then.
 * Whoever opens the file ends this program by the signal that asks for the lease, before the cut or after it.
 */
const PROGRAM = `
use strict; use Errno; use Fcntl qw(F_SETLEASE F_WRLCK);
my ($file, $bytes, $found, $modified, $record, @has) = @ARGV;
my $exact = eval { require Time::HiRes; 1 };
open(my $cut, '+<', $file) or die "open: $!\\n";
if (!fcntl($cut, F_SETLEASE, F_WRLCK)) {
  exit ${OPEN_ELSEWHERE} if $!{EAGAIN};
  die "lease: $!\\n" if $modified ne '';
}
open(my $in, '<', $record) or exit ${CHANGED};
local $/;
my $text = <$in>;
for (@has) { exit ${CHANGED} if index($text, $_) < 0 }
exit ${CHANGED} if -s $cut != $found;
truncate($cut, $bytes) or die "truncate: $!\\n";
if ($modified ne '') { $exact ? Time::HiRes::utime($modified, $modified, $cut) : utime($modified, $modified, $cut) }
`;

export async function cutAlone(mounted: string, cut: SoleCut, { processes }: Pick<MountTools, 'processes'>): Promise<CutOutcome> {
  const { file, modified } = cut.inCache ?? { file: mounted, modified: '' };
  const args = ['-e', PROGRAM, '--', file, String(cut.bytes), String(cut.foundBytes), modified, cut.record, ...cut.has];
  const { code, signal, stderr } = await processes.run({ command: 'perl', args, env: { LC_ALL: 'C' }, timeoutMs: TIMEOUT_MS });
  if (code === OPEN_ELSEWHERE || signal === 'SIGIO' || signal === 'SIGPOLL') return 'open elsewhere';
  if (code === CHANGED) return 'changed';
  if (code !== 0) throw new Error(`a file could not be made shorter: ${stderr.trim()}`);
  return 'cut';
}
