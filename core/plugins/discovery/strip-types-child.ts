/**
 * Runs in a child process: blanks the types of the TypeScript sources below a folder, in place. Ends with 1 at
 * the first that it cannot read, and prints why.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { transform } from '@swc/wasm-typescript';
import { isTypeScript } from './strip-types.ts';

/** What the parser throws: `message` for a person, and where it stands. */
interface Fault {
  readonly message?: string;
  readonly startLine?: number;
}

async function* sourcesBelow(folder: string): AsyncGenerator<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules') yield* sourcesBelow(file);
    else if (entry.isFile() && isTypeScript(entry.name) && !/\.d\.m?ts$/.test(entry.name)) yield file;
  }
}

for await (const file of sourcesBelow(process.argv[2] ?? '')) {
  const source = await readFile(file, 'utf8');
  const { code } = await transform(source, { mode: 'strip-only', filename: file }).catch((error: unknown) => {
    const { message = String(error), startLine } = error as Fault;
    console.error(`${message.trim()} (${startLine === undefined ? file : `${file}:${startLine}`})`);
    process.exit(1);
  });
  await writeFile(file, code);
}
