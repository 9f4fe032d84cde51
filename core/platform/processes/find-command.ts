/** Finds a command before it is started, so that a missing one gives a plain error message. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';

/** The absolute path of a command. Rejects with a sentence that names it. */
export async function findCommand(command: string, searchPath: string, cwd?: string): Promise<string> {
  if (command.includes('/')) {
    const file = isAbsolute(command) ? command : resolve(cwd ?? process.cwd(), command);
    const problem = await executableProblem(file);
    if (problem === undefined) return file;
    throw new Error(
      problem === 'missing'
        ? `command '${command}' was not found`
        : `command '${command}' may not be executed`,
    );
  }
  for (const folder of searchPath.split(':')) {
    const file = join(folder, command);
    if (command !== '' && (await executableProblem(file)) === undefined) return file;
  }
  throw new Error(`command '${command}' was not found`);
}

async function executableProblem(file: string): Promise<'missing' | 'forbidden' | undefined> {
  try {
    if (!(await stat(file)).isFile()) return 'missing';
  } catch {
    // Whatever the system says of it, there is nothing to start.
    return 'missing';
  }
  return access(file, constants.X_OK).then(
    () => undefined,
    () => 'forbidden',
  );
}
