/** The state folder: made, and refused where somebody else could lead the daemon by it. */
import { chmod, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from './make-folder.ts';
import { refuseForeignWay } from './ownership.ts';

/** Makes it, for the daemon's user alone, and these folders in it. Rejects with a sentence that says what to do. */
export async function prepareStateFolder(dir: string, inside: readonly string[]): Promise<void> {
  await refuseForeignState(dir);
  await orSentence(dir, async () => {
    await makeFolder(dir);
    await refuseForeign(dir);
  });
  // By now it was made: somebody may have made what was missing on the way to it.
  await refuseForeignState(dir);
  await orSentence(dir, async () => {
    await chmod(dir, 0o700);
    for (const folder of inside) await makeFolder(folder);
  });
}

async function orSentence(dir: string, make: () => Promise<void>): Promise<void> {
  await make().catch((cause: unknown) => {
    throw new Error(
      `the state folder ${dir} cannot be made (${(cause as Error).message}); choose another with supervisor.state_dir`,
      { cause },
    );
  });
}

/**
 * Rejects with a sentence where another user could lead root elsewhere by it. The folder is not to be left behind: it
 * says which mounts live, and where files wait.
 */
export async function refuseForeignState(dir: string): Promise<void> {
  await refuseForeignWay(
    dir,
    `what root writes into the state folder ${dir} could be led to any place of this machine: mend that with ` +
      'chown and chmod, or move the folder, with all in it, below folders that belong to root, and name that in ' +
      'supervisor.state_dir',
  );
}

/**
 * Where everybody may create folders, a state folder that another user created first is a trap: the daemon
 * would trust its records and plugins.
 */
async function refuseForeign(dir: string): Promise<void> {
  const [own, parent] = await Promise.all([stat(dir), stat(dirname(dir))]);
  if (own.uid !== process.geteuid?.() && (parent.mode & 0o002) !== 0)
    throw new Error(`it belongs to another user, in ${dirname(dir)}, where everybody may write`);
}
