import { access, constants, readFile } from 'node:fs/promises';

export interface Access {
  readonly allowOther: boolean;
  readonly uid: number;
  readonly gid: number;
}

/** Processes of other users may enter the mount only where the system lets this user allow it. */
export async function accessOf(): Promise<Access> {
  const uid = process.getuid?.() ?? 0;
  return { uid, gid: process.getgid?.() ?? 0, allowOther: uid === 0 || (await userAllowOther()) };
}

export async function userAllowOther(file = '/etc/fuse.conf'): Promise<boolean> {
  // Without the file, FUSE allows it to nobody but root.
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^[ \t]*user_allow_other[ \t\r]*$/m.test(text);
}

/** Why nothing can be mounted on this machine; undefined when it can. */
export async function fuseProblem(
  locate: (command: string) => Promise<string | undefined>,
  device = '/dev/fuse',
): Promise<string | undefined> {
  const refusal = await access(device, constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? 'no reason given',
  );
  if (refusal === 'EACCES')
    return (
      `${device} may not be opened by this user: give it mode 0666 (chmod 0666 ${device}), or run the ` +
      'daemon as root'
    );
  if (refusal !== undefined)
    return (
      `${device} cannot be opened (${refusal}): load the kernel module (modprobe fuse), or give the ` +
      'container the device (--device /dev/fuse)'
    );
  const found = (await locate('fusermount3')) ?? (await locate('fusermount'));
  return found === undefined ? 'fusermount3 is missing: install the package fuse3' : undefined;
}
