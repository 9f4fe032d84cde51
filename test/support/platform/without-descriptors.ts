/** Runs a script in a Node process that can open no more files. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * What it prints: its own lines, and at last `lives`. The modules, by the names to import from each, are those of this
 * build; all that the script needs beside is made in `before`.
 */
export async function withoutDescriptors(
  modules: Readonly<Record<string, string>>,
  { before = '', script }: { readonly before?: string; readonly script: string },
): Promise<readonly string[]> {
  const imports = Object.entries(modules).map(
    ([names, file]) =>
      `import { ${names} } from ${JSON.stringify(new URL(`../../../${file}`, import.meta.url).href)};`,
  );
  const text = `
    import { openSync } from 'node:fs';
    ${imports.join('\n')}
    process.stdout.write('');
    const failure = (work) => work.then(() => 'none', (error) => String(error.cause ?? error.message));
    ${before}
    try { for (;;) openSync('/dev/null'); } catch {}
    ${script}
    setTimeout(() => { console.log('lives'); process.exit(); }, 500);`;
  const node = [process.execPath, '--input-type=module', '-e', text];
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 500; exec "$@"', 'sh', ...node]);
  return stdout.trim().split('\n');
}
