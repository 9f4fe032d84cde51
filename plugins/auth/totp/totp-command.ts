/** `mountkeeper totp new`: makes the secret of a user's one-time codes, and a QR code for the app that shows them. */
import { randomBytes } from 'node:crypto';
import type { CliCommand, CliContext } from 'mountkeeper';
import { SECRET_BYTES, toBase32, uriOf } from './totp.ts';

const USAGE = 'new [NAME]';
const LONGEST_NAME = 128;

async function run(cli: CliContext): Promise<number> {
  const [what, name = 'admin', ...more] = cli.args;
  if (
    what !== 'new' ||
    more.length > 0 ||
    name.startsWith('-') ||
    name === '' ||
    name.length > LONGEST_NAME
  ) {
    cli.printError(`it needs "new", and at most one name\nusage: mountkeeper totp ${USAGE}`);
    return 64;
  }
  const secret = toBase32(randomBytes(SECRET_BYTES));
  const uri = uriOf(secret, name);
  const toml = `totp_secret = "${secret}"`;
  if (cli.json) {
    cli.print(JSON.stringify({ secret, uri, toml }));
    return 0;
  }
  // Loaded only when somebody wants to see one.
  const { encodeQR } = await import('qr');
  cli.print(secret);
  cli.printError(`\n${encodeQR(uri, 'ascii', { border: 2 }).trimEnd()}\n${uri}\n`);
  cli.printError(
    'Read the picture with an authenticator app. The secret is shown this once. Put this line into [web]',
  );
  cli.printError(`for web.password, or into the [[web.users]] of "${name}":\n\n${toml}`);
  return 0;
}

export const totpCommand: CliCommand = {
  name: 'totp',
  usage: USAGE,
  summary: 'Make the secret of the one-time codes that a user signs in with, and a QR code of it.',
  run,
};
