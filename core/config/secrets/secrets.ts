/** Resolves secrets: reads what a reference points to. */
import { isAbsolute, join } from 'node:path';
import type { Secret, Secrets } from '../../contract/config.ts';
import { readSmallFile } from '../../platform/files/small-file.ts';
import { isTable } from '../../sdk/toml/document.ts';

const FORMS = ['env', 'file', 'credential'] as const;

/** Where systemd keeps the credentials of the running service, for root to read. */
export const SERVICE_CREDENTIALS = '/run/credentials/mountkeeper.service';

export type SecretReference = Exclude<Secret, string>;

/** True for `{ env = … }`, `{ file = … }` and `{ credential = … }`. */
export function isReference(value: unknown): value is SecretReference {
  if (!isTable(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 1 && FORMS.some((form) => typeof value[form] === 'string');
}

export function createSecrets(options: { readonly env: NodeJS.ProcessEnv }): Secrets {
  return {
    resolve(secret: Secret): string {
      if (typeof secret === 'string') return secret;
      if ('env' in secret) return fromEnvironment(secret.env, options.env);
      if ('file' in secret) return fromFile(secret.file, `the file ${secret.file}`);
      return fromCredential(secret.credential, options.env['CREDENTIALS_DIRECTORY']);
    },
  };
}

function fromEnvironment(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value === undefined) throw new Error(`the environment variable ${name} is not set`);
  // An empty password would let everybody in.
  if (value === '') throw new Error(`the environment variable ${name} is empty`);
  return value;
}

/** False for a name that no credential can have. */
export function isCredentialName(name: string): boolean {
  return !name.includes('/') && name !== '.' && name !== '..';
}

function fromCredential(name: string, folder: string | undefined): string {
  if (!isCredentialName(name))
    throw new Error(`"${name}" cannot be the name of a credential; it has no folder in it`);
  if (folder === undefined || folder === '') {
    throw new Error(
      `the credential ${name} cannot be found: $CREDENTIALS_DIRECTORY is not set; ` +
        'pass it with LoadCredential= of systemd',
    );
  }
  return fromFile(join(folder, name), `the credential ${name}`);
}

function fromFile(path: string, what: string): string {
  if (!isAbsolute(path)) throw new Error(`${what} is not an absolute path`);
  const text = readSmallFile(path, what).replace(/\r?\n$/, '');
  if (text === '') throw new Error(`${what} is empty`);
  return text;
}
