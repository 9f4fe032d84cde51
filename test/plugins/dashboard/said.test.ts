/** Reasons and notices in other languages: what is translated how, and that none of those in the code is missing. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NOTES } from '../../../core/shares/share-status.ts';
import { CATALOGUES } from '../../../plugins/dashboard/languages.ts';
import { SAID, saidIn } from '../../../plugins/dashboard/said.ts';
import { PLAIN_SENTENCES } from '../../../plugins/mount/rclone/error-messages.ts';

const PROJECT = fileURLToPath(new URL('../../../../', import.meta.url));
const QUOTES = '`\'"';
/** Where a reason or a notice is written down: its text follows. */
const PLACES = [
  /level: [^\n]{1,60},\s*message:\s*/g,
  /\btrouble:\s*/g,
  /troubles\.push\(\s*/g,
  /(?:inPlainWords|remoteFailure)\([^\n]{1,60}?\], /g,
];
/** What the uploader gives as a reason is a whole sentence, wherever it stands. */
const UPLOADER = ['compare', 'transfer', 'proof'].map((folder) => `plugins/uploads/${folder}`);
const WHOLE = /(?<!\+\s*)(?<=[\s(:?])(?=['"`][A-Z][a-z']+ )/g;
/** A frame around something else, such as a name, says nothing itself. */
const FEWEST_WORDS = 3;

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (path.endsWith('.ts')) yield readFileSync(path, 'utf8');
  }
}

/** Where the literal that begins there ends, and its text with `{}` for each value. */
function literalAt(source: string, start: number): { readonly text: string; readonly end: number } {
  const quote = source[start];
  let text = '';
  let at = start + 1;
  while (at < source.length && source[at] !== quote) {
    if (source[at] === '\\') {
      text += source[at + 1] ?? '';
      at += 2;
    } else if (quote === '`' && source.startsWith('${', at)) {
      text += '{}';
      at = valueEnd(source, at + 2);
    } else {
      text += source[at] ?? '';
      at += 1;
    }
  }
  return { text, end: at + 1 };
}

function valueEnd(source: string, start: number): number {
  let depth = 1;
  let at = start;
  while (at < source.length && depth > 0) {
    const sign = source[at] ?? '';
    if (QUOTES.includes(sign)) {
      at = literalAt(source, at).end;
      continue;
    }
    if (sign === '{') depth += 1;
    if (sign === '}') depth -= 1;
    at += 1;
  }
  return at;
}

/** One or more literals with `+` between them; undefined where something else stands. */
function sentenceAt(source: string, start: number): string | undefined {
  let text = '';
  let at = start;
  while (QUOTES.includes(source[at] ?? ' ')) {
    const literal = literalAt(source, at);
    text += literal.text;
    const more = /^\s*\+\s*/.exec(source.slice(literal.end, literal.end + 100));
    if (!more) return text;
    at = literal.end + more[0].length;
  }
  return undefined;
}

function wordsIn(sentence: string): number {
  return sentence.match(/[A-Za-z]{2,}/g)?.length ?? 0;
}

const nameless = (sentence: string): string => sentence.replaceAll(/\{\w+\}/g, '{}');
const all = ['core', 'plugins'].flatMap((folder) => [...sources(join(PROJECT, folder))]);

describe('what Mountkeeper says, in other languages', () => {
  it('is there for every notice and reason that the code writes down', () => {
    const written = all.flatMap((source) =>
      PLACES.flatMap((place) =>
        [...source.matchAll(place)].map(({ 0: { length }, index }) => sentenceAt(source, index + length)),
      ),
    );
    const uploader = UPLOADER.flatMap((folder) => [...sources(join(PROJECT, folder))]).flatMap((source) =>
      [...source.matchAll(WHOLE)]
        .map(({ index }) => sentenceAt(source, index))
        .filter((sentence) => sentence?.endsWith('.')),
    );
    const found = [...new Set([...written, ...uploader, ...PLAIN_SENTENCES, ...Object.values(NOTES)])]
      .filter((sentence) => sentence !== undefined)
      .filter((sentence) => wordsIn(sentence) >= FEWEST_WORDS && !sentence.startsWith('The example '));
    assert.ok(found.length > 50, `${found.length} sentences`);
    for (const [language, catalogue] of Object.entries(SAID)) {
      const known = new Set(Object.keys(catalogue).map(nameless));
      assert.deepEqual(
        found.filter((sentence) => !known.has(sentence)),
        [],
        `without a translation in plugins/dashboard/locales/said/${language}.json`,
      );
    }
    assert.deepEqual(
      Object.keys(SAID),
      Object.keys(CATALOGUES).filter((language) => language !== 'en'),
    );
  });

  it('has nothing that the code does not say any more, and no value that the code does not give', () => {
    // Literals that a plus sign joins are one text.
    const code = all
      .join('\n')
      .replaceAll(/['"`]\s*\+\s*['"`]/g, '')
      .replaceAll(/\\(['"`])/g, '$1');
    for (const catalogue of Object.values(SAID))
      for (const [english, translated] of Object.entries(catalogue)) {
        const missing = english
          .split(/\{\w+\}/)
          .map((part) => part.trim())
          .filter((part) => part.length > 12 && !code.includes(part));
        assert.deepEqual(missing, [], english);
        for (const value of translated.match(/\{\w+\}/g) ?? []) assert.ok(english.includes(value), english);
      }
  });

  it('is found inside others and beside them, and keeps the words of servers', () => {
    const said = (text: string): string => saidIn('zh', text);
    assert.equal(
      said('there is no space left (sftp: "disk full"; really)'),
      '没有剩余空间（sftp: "disk full"; really）',
    );
    assert.equal(
      said(
        'the remote does not answer (the remote refuses connections; is its service running, and is the port ' +
          'right? (dial tcp 10.0.0.9:22: connection refused)); cached files stay readable, writes wait in the ' +
          'cache; its ceiling leaks; it is taken down as soon as its files are on the remote',
      ),
      'NAS 没有应答（NAS 拒绝连接；请检查其服务是否在运行、端口是否正确' +
        '（dial tcp 10.0.0.9:22: connection refused））；' +
        '已缓存的文件仍可读取，写入的内容在缓存中等待; its ceiling leaks; ' +
        '文件传到 NAS 后即会取消挂载',
    );
    assert.equal(
      said(`the share '<b> {share} $& ' does not answer over WebDAV`),
      '共享“<b> {share} $& ”通过 WebDAV 没有应答',
    );
    assert.equal(
      said("the mount's process ended with exit code 3 (no reason)"),
      '挂载进程已结束，退出码 3 (no reason)',
    );
    assert.equal(saidIn('en', 'there is no space left'), 'there is no space left');
    const long = `the share '${"a' is not shown over ".repeat(5_000)}`;
    assert.equal(said(long), long, 'and takes no time');
    const named = (letters: number): string =>
      `the share '${'a'.repeat(letters)}' does not answer over WebDAV`;
    assert.match(said(named(900)), /没有应答/);
    assert.equal(said(named(1_000)), named(1_000), 'nobody wrote that by hand');
  });
});
