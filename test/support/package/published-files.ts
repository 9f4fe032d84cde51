/** What npm would publish of this project, by npm itself: it takes seconds, so all tests of a process ask once. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROJECT = fileURLToPath(new URL('../../../../', import.meta.url));

let asked: Promise<ReadonlySet<string>> | undefined;

/** Paths from the project's folder. */
export function publishedFiles(): Promise<ReadonlySet<string>> {
  return (asked ??= packed());
}

async function packed(): Promise<ReadonlySet<string>> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const options = { cwd: PROJECT, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)('npm', args, options);
  const told = JSON.parse(stdout) as Record<string, { readonly files: readonly { readonly path: string }[] }>;
  return new Set(Object.values(told).flatMap(({ files }) => files.map(({ path }) => path)));
}
