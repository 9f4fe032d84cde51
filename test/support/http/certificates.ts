/** Certificates for tests, made by openssl: a root, one signed by it in between, and servers' below that. */
import { execFile } from 'node:child_process';
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMES = 'subjectAltName=DNS:localhost,IP:127.0.0.1';

export interface CertificateFiles {
  /** With the chain. */
  readonly certificate: string;
  readonly key: string;
}

/** What a public authority is elsewhere. */
export interface TestAuthority {
  /** The root, for clients to trust. */
  readonly root: string;
  /** A certificate for localhost and 127.0.0.1, by a key of its own, as `NAME.pem` and `NAME.key`. */
  issue(name: string, days?: number): Promise<CertificateFiles>;
}

export async function createAuthority(folder: string): Promise<TestAuthority> {
  await mkdir(folder, { recursive: true });
  const at = (name: string): string => join(folder, name);
  const make = async (name: string, more: readonly string[]): Promise<void> => {
    const key = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      at(`${name}.key`),
    ];
    const subject = ['-subj', `/CN=${name}`, '-out', at(`${name}.pem`)];
    await run('openssl', ['req', '-x509', ...key, ...subject, ...more]);
  };
  const signedBy = (name: string): string[] => ['-CA', at(`${name}.pem`), '-CAkey', at(`${name}.key`)];
  const authority = ['-days', '30', '-addext', 'keyUsage=critical,keyCertSign'];
  await make('root', authority);
  await make('between', [...authority, ...signedBy('root')]);
  return {
    root: at('root.pem'),
    issue: async (name, days = 30) => {
      const own = ['-addext', NAMES, '-addext', 'basicConstraints=critical,CA:FALSE'];
      await make(name, ['-days', String(days), ...own, ...signedBy('between')]);
      await appendFile(at(`${name}.pem`), await readFile(at('between.pem')));
      return { certificate: at(`${name}.pem`), key: at(`${name}.key`) };
    },
  };
}
