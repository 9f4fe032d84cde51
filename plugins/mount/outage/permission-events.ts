/**
 * A process that asks the kernel to be asked before anybody opens something on an overlay (fanotify's permission
 * events), and denies smbd the folders whose listing cannot be read. Written in perl, which every Debian has, because
 * Node has no call for this.
 */

interface Calls {
  readonly fanotify_init: number;
  readonly fanotify_mark: number;
  readonly getdents64: number;
  readonly prctl: number;
  readonly read: number;
  readonly close: number;
}

/** By architecture, as Node names it. */
const CALLS: Readonly<Partial<Record<NodeJS.Architecture, Calls>>> = {
  x64: { fanotify_init: 300, fanotify_mark: 301, getdents64: 217, prctl: 157, read: 0, close: 3 },
  arm64: { fanotify_init: 262, fanotify_mark: 263, getdents64: 61, prctl: 167, read: 63, close: 57 },
};

/** Its capability, in lower case and without `cap_`. */
export const HELPER_CAPABILITY = 'sys_admin';

/** Said when it is armed, and as an answer to each byte of its input. */
export const HELPER_LIVES = '.';
/** Bytes of its input, with which it is also asked whether it lives. */
export const SAID = {
  /** A folder that takes long may still be read: nobody is denied it before. */
  doubtful: '?',
  /** What is not read soon will not be read. */
  shut: '!',
} as const;

/**
 * A child reads each folder, and says how that went through a pipe. The process itself reads none; but the kernel opens
 * what an event is about in its name, which waits where bindfs does: then it is killed. Only the process has the
 * descriptor of the events, so the kernel lets everything pass as soon as it has ended. It ends with its input, and is
 * killed with the daemon (PR_SET_PDEATHSIG), even while it is stopped.
 *
 * One event is read at a time (24 bytes): one whose file cannot be opened is denied by the kernel, and would take
 * others with it. Reading nothing from a folder fails with EISDIR and asks no file system, which tells folders from
 * files. Every error becomes EIO, since the kernel takes few errors in an answer, and before Linux 6.14 none.
 */
const SCRIPT = `
use strict;
my ($init, $mark, $getdents, $prctl, $read, $close, $overlay) = @ARGV;
$_ += 0 for $init, $mark, $getdents, $prctl, $read, $close;
my ($EIO, $ENOTDIR, $EISDIR) = (5, 20, 21);
my ($ALLOW, $DENY) = (1, 2);
# Seconds that a child may take once nothing can be read; how many there may be.
my ($LONGEST, $MOST) = (5, 64);
my $isShut = 0;
# PR_SET_PDEATHSIG, SIGKILL
sub endWithParent { syscall($prctl, 1, 9, 0, 0, 0) }

endWithParent();
chdir($overlay) && (readlink("/proc/self/cwd") // "") eq $overlay or die "$overlay cannot be entered\\n";
# FAN_CLASS_PRE_CONTENT, whose answers may hold an error; not blocking, closed on exec. Files: so, too.
my $group = syscall($init, 0x8 | 0x2 | 0x1, 0x80800);
die "fanotify: $!\\n" if $group < 0;
my $here = ".";
# FAN_MARK_ADD | FAN_MARK_FILESYSTEM; FAN_OPEN_PERM | FAN_ONDIR; AT_FDCWD
die "fanotify: $!\\n" if syscall($mark, $group, 0x101, 0x40010000, -100, $here) < 0;
chdir("/");
open(my $events, "+<&=", $group) or die "fanotify: $!\\n";
pipe(my $verdicts, my $verdict) or die "pipe: $!\\n";

my ($number, %reads, @ended) = (0);

sub answer {
  my ($fd, $isDenied) = @_;
  syswrite($events, pack("lL", $fd, $isDenied ? $DENY | $EIO << 24 : $ALLOW)) // ($isDenied
    && syswrite($events, pack("lL", $fd, $DENY)));
  syscall($close, $fd);
}

sub isSmbd {
  open(my $comm, "<", "/proc/$_[0]/comm") or return 0;
  return (<$comm> // "") =~ /^smbd/;
}

sub isFolder {
  my $none = " ";
  return syscall($read, $_[0], $none, 0) < 0 && $! == $EISDIR;
}

sub readFolder {
  my ($fd) = @_;
  return answer($fd, $isShut) if keys(%reads) >= $MOST;
  $number += 1;
  my $pid = fork();
  return answer($fd, 1) unless defined $pid;
  if ($pid == 0) {
    close($_) for $events, *STDIN, *STDOUT, *STDERR;
    endWithParent();
    my $entries = "\\0" x 32768;
    my $isDenied = syscall($getdents, $fd, $entries, length $entries) < 0 && $! != $ENOTDIR;
    syswrite($verdict, pack("LL", $number, $isDenied ? 1 : 0));
    exit 0;
  }
  # It stays open until it is answered, so that no other event has its number.
  $reads{$number} = { fd => $fd, pid => $pid, since => time };
}

sub done {
  my ($number, $isDenied) = @_;
  my $read = delete $reads{$number} or return;
  answer($read->{fd}, $isDenied);
  push @ended, $read->{pid};
}

syswrite(STDOUT, "${HELPER_LIVES}");
while (1) {
  my $ready = "";
  vec($ready, $_, 1) = 1 for 0, fileno($events), fileno($verdicts);
  next if select($ready, undef, undef, %reads || @ended ? 0.2 : undef) < 0;
  if (vec($ready, 0, 1)) {
    sysread(STDIN, my $said, 64) or exit 0;
    $isShut = $said =~ /\\Q${SAID.shut}\\E$/ ? 1 : 0;
    syswrite(STDOUT, "${HELPER_LIVES}");
  }
  if (vec($ready, fileno($verdicts), 1) && sysread($verdicts, my $said, 8) == 8) {
    done(unpack("LL", $said));
  }
  if (vec($ready, fileno($events), 1) && (sysread($events, my $event, 24) // 0) == 24) {
    my ($fd, $pid) = (unpack("LCCSQll", $event))[5, 6];
    if ($fd >= 0) { isFolder($fd) && isSmbd($pid) ? readFolder($fd) : answer($fd, 0) }
  }
  if ($isShut) {
    for my $late (grep { time - $reads{$_}{since} > $LONGEST } keys %reads) {
      kill 9, $reads{$late}{pid};
      done($late, 1);
    }
  }
  @ended = grep { waitpid($_, 1) == 0 } @ended;
}`;

/** The command and its arguments; undefined on an architecture whose calls are not known. */
export function helperCommand(
  overlay: string,
): readonly [command: string, args: readonly string[]] | undefined {
  const calls = CALLS[process.arch];
  if (!calls) return undefined;
  const { fanotify_init, fanotify_mark, getdents64, prctl, read, close } = calls;
  const numbers = [fanotify_init, fanotify_mark, getdents64, prctl, read, close].map(String);
  return ['perl', ['-e', SCRIPT, ...numbers, overlay]];
}
