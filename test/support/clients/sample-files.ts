/** Files as users have them, of every kind that all protocols can carry. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inForm } from '../platform/long-form.ts';

const NAMES = [
  'plain.txt',
  'UPPER.TXT',
  '.hidden',
  'no extension',
  'two  spaces.txt',
  ' leading space',
  'many.dots.in.a.name.tar.gz',
  '照片 2024 春节.jpg',
  '全家福.raw',
  '読んでください.md',
  '한국어 파일.txt',
  'до завтра.txt',
  'Müller & Söhne.pdf',
  "Côte d'Azur été.png",
  'decomposed e\u0301te\u0301.txt',
  'עברית.txt',
  'ملف عربي.txt',
  'ไทย.txt',
  'emoji 🎉👨‍👩‍👧.png',
  '𠮷野家.txt',
  'hash #1.txt',
  'percent %20 %41.txt',
  'plus + and = sign.txt',
  'semi;colon.txt',
  'comma, here.txt',
  'at @ home.txt',
  'dollar $HOME.txt',
  'back`tick.txt',
  'caret ^ tilde ~.txt',
  'brackets [1] {2} (3).txt',
  'exclamation!.txt',
  'ampersand & co.txt',
  '100%',
  '~$owner.docx',
  '-dash first',
  'a',
  `${'n'.repeat(251)}.raw`,
  `${'长'.repeat(83)}.raw`,
];
const FOLDERS = ['', 'inner folder/', '子文件夹/深 deep/'];
const SIZES = [
  0, 1, 2, 511, 512, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 131_073, 1_048_575, 1_048_577, 3_000_017,
];
/** It is carried some twenty times. */
const BIG_BYTES = inForm({ short: 20_000_000, long: 300_000_000 });
/** In the short form each name stands in one of the folders, in the long one in all of them. */
const TOTAL = inForm({ short: 50, long: 200 });

/** Path → checksum of what was laid down. */
export async function layDownFiles(folder: string): Promise<ReadonlyMap<string, string>> {
  const sums = new Map<string, string>();
  const put = async (path: string, bytes: number): Promise<void> => {
    const content = randomBytes(bytes);
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
    sums.set(path, createHash('sha256').update(content).digest('hex'));
  };
  const everywhere = FOLDERS.flatMap((room) => NAMES.map((name) => `${room}${name}`));
  const inTurn = NAMES.map((name, index) => `${FOLDERS[index % FOLDERS.length]}${name}`);
  const named = inForm({ short: inTurn, long: everywhere });
  for (const [index, path] of named.entries()) await put(path, SIZES[index % SIZES.length] ?? 0);
  for (let index = named.length; index < TOTAL - 1; index += 1)
    await put(`many/IMG_${String(index).padStart(4, '0')}.jpg`, 1_000 + 397 * index);
  await put('one big film.mov', BIG_BYTES);
  return sums;
}
