import type { Readable } from 'node:stream';

/**
 * Lines end only at line feeds: node:readline also ends them at U+2028 and U+2029, which file names may
 * contain.
 */
export async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of input.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}
