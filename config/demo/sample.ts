/** The demo NAS's files: pictures and texts, with spaces and letters of many scripts in their names. */
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32, deflateSync } from './png-parts.ts';

const PICTURE_SIZE = 900;

/** A valid PNG: a colour gradient with noise over it, so that it does not shrink to nothing. */
function picture(hue: number): Buffer {
  const noise = randomBytes(PICTURE_SIZE * PICTURE_SIZE);
  const rows = Buffer.alloc((PICTURE_SIZE * 3 + 1) * PICTURE_SIZE);
  for (let y = 0; y < PICTURE_SIZE; y += 1) {
    for (let x = 0; x < PICTURE_SIZE; x += 1) {
      const at = y * (PICTURE_SIZE * 3 + 1) + 1 + x * 3;
      rows[at] = (x >> 2) + hue;
      rows[at + 1] = (y >> 2) + ((noise[y * PICTURE_SIZE + x] ?? 0) & 63);
      rows[at + 2] = 255 - (hue >> 1);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(PICTURE_SIZE, 0);
  header.writeUInt32BE(PICTURE_SIZE, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

export const BIG_PICTURE = 'Photos 照片/2024 春节/全家福 family.png';

export async function writeSample(folder: string): Promise<void> {
  const files: [string, Buffer | string][] = [
    [BIG_PICTURE, picture(20)],
    ['Photos 照片/2024 春节/灯笼 lantern.png', picture(90)],
    ["Photos 照片/Côte d'Azur été.png", picture(160)],
    ['Team Files/Protokoll Müller & Söhne.txt', 'Besprechung vom Montag: alle waren da.\n'.repeat(200)],
    ['Team Files/Ideas/до завтра.txt', 'Сделать завтра.\n'.repeat(50)],
    ['Team Files/Ideas/読んでください.md', '# 読んでください\n\nこのフォルダはデモです。\n'],
  ];
  for (const [path, content] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}
