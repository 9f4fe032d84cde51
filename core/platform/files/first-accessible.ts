import { access, constants } from 'node:fs/promises';

/**
 * The first of these paths that is there and may be read by the daemon's user, or with `X_OK` executed. Undefined
 * when none is, whatever the reason.
 */
export async function firstAccessible(
  files: readonly string[],
  mode: number = constants.R_OK,
): Promise<string | undefined> {
  for (const file of files) {
    const isAccessible = await access(file, mode).then(
      () => true,
      () => false,
    );
    if (isAccessible) return file;
  }
  return undefined;
}
