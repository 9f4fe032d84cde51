/** `mountkeeper receipt`. */
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { ended, shownName } from './proof-command.ts';
import type { ReceiptBody } from './proof/receipt-jobs.ts';

const USAGE = 'SHARE PATH [--output FILE]';

interface Asked {
  readonly share: string;
  /** `''`: the whole share. */
  readonly path: string;
  readonly output: string | undefined;
}

/** Undefined for arguments that make no sense. */
function askedOf(args: readonly string[]): Asked | undefined {
  const {
    values: { output },
    positionals: [share, path, ...more],
  } = parseArgs({ args: [...args], allowPositionals: true, options: { output: { type: 'string' } } });
  if (share === undefined || path === undefined || more.length > 0 || output === '') return undefined;
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  return { share, path: names.join('/'), output };
}

async function receipt(cli: CliContext): Promise<number> {
  const asked = askedOf(cli.args);
  if (asked === undefined) {
    cli.printError(`usage: mountkeeper receipt ${USAGE}`);
    return 64;
  }
  const file = asked.output === undefined ? undefined : resolve(asked.output);
  if (file !== undefined && !(await mayBeReplaced(file))) {
    cli.printError(`${file} is not a plain file: nothing is written there`);
    return 64;
  }
  const body = await ended<ReceiptBody>({ ...asked, verb: 'receipt' }, cli);
  if (body === undefined) return 1;
  if (body.hash_list !== null && file !== undefined)
    await writeWhole(file, body.hash_list, { beside: `${file}.${process.pid}.new` });
  tell(body, file !== undefined, cli);
  return body.is_complete ? 0 : 1;
}

/** A device or a link would be replaced by the receipt itself. */
async function mayBeReplaced(file: string): Promise<boolean> {
  return (await lstat(file).catch(undefinedWhenMissing))?.isFile() ?? true;
}

function tell(body: ReceiptBody, isWritten: boolean, cli: CliContext): void {
  if (cli.json) cli.print(JSON.stringify(body));
  else if (!isWritten && body.hash_list !== null) cli.print(body.hash_list.trimEnd());
  for (const { path, reason } of body.unproved) cli.printError(`not proved: ${shownName(path)}: ${reason}`);
  cli.printError(body.message);
}

export const receiptCommand: CliCommand = {
  name: 'receipt',
  usage: USAGE,
  summary: 'Write a media hash list (ASC MHL) of the files that are proved to be on the remote.',
  run: receipt,
};
