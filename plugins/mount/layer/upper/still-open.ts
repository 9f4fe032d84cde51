/** Finds out whether programs can still write to files, also through a mount that was taken off its path. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Processes } from 'mountkeeper';

const TIMEOUT_MS = 60_000;
/**
 * The kernel refuses a read lease while anybody has the file open for writing, or mapped for it, through any
 * path and namespace. Written in perl, because Node has no call for leases, and with the modules of `perl-base`
 * alone, which is all that every Debian has. Prints a letter for the first such file, and ends.
 */
const WRITERS = `
use strict; use Fcntl;
my @folders = @ARGV;
while (defined(my $folder = pop @folders)) {
  opendir(my $names, $folder) or $!{ENOENT} ? next : die "$folder: $!\n";
  for my $path (map { "$folder/$_" } grep { $_ ne "." && $_ ne ".." } readdir($names)) {
    next if -l $path;
    if (-d _) { push @folders, $path; next }
    next if !-f _;
    sysopen(my $file, $path, O_RDONLY | O_NOFOLLOW) or next;
    next if fcntl($file, 1024, 0) || !$!{EAGAIN};
    print "w"; exit 0;
  }
}`;

/** Whether a program has a file in these folders open for writing. Rejects when that cannot be found out. */
export async function isWrittenTo(
  folders: readonly string[],
  processes: Pick<Processes, 'run'>,
): Promise<boolean> {
  const there: string[] = [];
  for (const folder of folders) if (await holdsFiles(folder)) there.push(folder);
  if (there.length === 0) return false;
  const { stdout, stderr, code } = await processes.run({
    command: 'perl',
    args: ['-e', WRITERS, ...there],
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
  });
  if (code !== 0)
    throw new Error(
      `whether programs still write to files in ${there.join(' and ')} cannot be found out: ${stderr.trim()}`,
    );
  return stdout === 'w';
}

/** False for a folder that is not there, and one in which only empty folders lie. */
async function holdsFiles(folder: string): Promise<boolean> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(undefinedWhenMissing)) ?? [];
  if (entries.some((entry) => !entry.isDirectory())) return true;
  for (const { name } of entries) if (await holdsFiles(join(folder, name))) return true;
  return false;
}

/** The kernel refuses `write` while a file is open or mapped anywhere, `read` while it is so for writing. */
export type Lease = 'read' | 'write';

const LEASE_NUMBERS: Readonly<Record<Lease, number>> = { read: 0, write: 1 };
const LEASE_TIMEOUT_MS = 20_000;
/** Prints a letter for each path that it reads. */
const LEASES = `
use strict; local $/ = "\\0";
while (my $path = <STDIN>) {
  chomp $path;
  my $file;
  my $is_free = open($file, "<", $path) && fcntl($file, 1024, $ARGV[0] + 0);
  print $is_free ? "f" : "u";
}`;

/** Those of the files for which the kernel gives no such lease, through whatever path and namespace they are used. */
export async function withoutLease(
  files: readonly string[],
  lease: Lease,
  processes: Pick<Processes, 'run'>,
): Promise<ReadonlySet<string>> {
  if (files.length === 0) return new Set();
  const { stdout } = await processes.run({
    command: 'perl',
    args: ['-e', LEASES, String(LEASE_NUMBERS[lease])],
    input: files.map((path) => `${path}\0`).join(''),
    timeoutMs: LEASE_TIMEOUT_MS,
  });
  return new Set(files.filter((_, index) => stdout[index] !== 'f'));
}
