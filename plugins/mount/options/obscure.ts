/** The form that rclone expects for passwords in its configuration, made here: asking rclone costs a process. */
import { createCipheriv, randomBytes } from 'node:crypto';

/** The key that every rclone has (`fs/config/obscure`): obscuring keeps passwords from being read by chance only. */
const KEY = Buffer.from('9c935b48730a554d6bfd7c63c886a92bd390198eb8128afbf4de162b8b95f638', 'hex');
const IV_BYTES = 16;

/** The first line of the text counts, as for `rclone obscure -`. No text stays none: rclone would refuse it. */
export function obscure(text: string): string {
  if (text === '') return '';
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-ctr', KEY, iv);
  const [line = ''] = text.split(/\r?\n/, 1);
  return Buffer.concat([iv, cipher.update(line, 'utf8'), cipher.final()]).toString('base64url');
}
