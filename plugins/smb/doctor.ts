import type { Check, Config, Processes } from 'mountkeeper';
import { resolveListen } from './addresses.ts';
import { hasModules, locate, missingPackages } from './samba.ts';

export async function checks({ smb }: Config, processes: Processes): Promise<readonly Check[]> {
  if (!smb.enabled) return [{ title: 'SMB', result: 'ok', detail: 'off (smb.enabled)', advice: '' }];
  return [await serverCheck(processes), listenCheck(smb), loginCheck(smb)];
}

async function serverCheck(processes: Processes): Promise<Check> {
  const title = 'SMB server';
  const missing = await missingPackages();
  if (missing.length > 0)
    return {
      title,
      result: 'error',
      detail: `not installed: ${missing.join(', ')}`,
      advice:
        `Install it: apt-get install ${missing.join(' ')}. ` +
        `The system's own Samba service is not needed and may stay off.`,
    };
  if (process.getuid?.() !== 0)
    return {
      title,
      result: 'error',
      detail: 'smbd needs root',
      advice: 'Run the daemon as root, or set smb.enabled = false.',
    };
  const smbd = (await locate('smbd')) as string;
  // What does not run shows in its modules below.
  const { stdout } = await processes
    .run({ command: smbd, args: ['--version'], timeoutMs: 5_000 })
    .catch(() => ({ stdout: '' }));
  const detail = `Samba ${stdout.trim().replace(/^Version /, '')}`;
  if (await hasModules(smbd, processes)) return { title, result: 'ok', detail, advice: '' };
  return {
    title,
    result: 'warning',
    detail: `${detail}, without the modules for macOS`,
    advice: 'For Macs, install them: apt-get install samba-vfs-modules.',
  };
}

function listenCheck(smb: Config['smb']): Check {
  const title = 'SMB addresses';
  try {
    const { missing } = resolveListen(smb.listen);
    if (missing.length === 0)
      return { title, result: 'ok', detail: `${smb.listen.join(', ')}, port ${smb.port}`, advice: '' };
    return {
      title,
      result: 'warning',
      detail: `not there now: ${missing.join(', ')}`,
      advice: 'Correct smb.listen, or bring the network up; it is listened on as soon as it is there.',
    };
  } catch (error) {
    return { title, result: 'error', detail: (error as Error).message, advice: 'Correct smb.listen.' };
  }
}

function loginCheck(smb: Config['smb']): Check {
  const title = 'SMB users';
  if (smb.guest)
    return {
      title,
      result: 'warning',
      detail: 'everybody is let in without a password (smb.guest)',
      advice:
        'Fine in a network where everybody may write; else set smb.guest = false and add [[smb.users]].',
    };
  if (smb.users.length === 0)
    return {
      title,
      result: 'warning',
      detail: 'nobody can log in',
      advice: 'Add [[smb.users]], or set smb.guest = true.',
    };
  return { title, result: 'ok', detail: `${smb.users.length}`, advice: '' };
}
