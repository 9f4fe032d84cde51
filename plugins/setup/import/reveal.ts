/** Clear text of a password that rclone keeps obscured. */
import { createDecipheriv } from 'node:crypto';

/** The key that every rclone has (`fs/config/obscure`): obscuring keeps passwords from being read by chance only. */
const KEY = Buffer.from('9c935b48730a554d6bfd7c63c886a92bd390198eb8128afbf4de162b8b95f638', 'hex');
const IV_BYTES = 16;

/** Throws a sentence that does not name the password. */
export function reveal(obscured: string): string {
  const bytes = /^[\w-]+$/.test(obscured) ? Buffer.from(obscured, 'base64url') : Buffer.alloc(0);
  if (bytes.length < IV_BYTES) throw new Error('a password is not obscured as rclone does it');
  const decipher = createDecipheriv('aes-256-ctr', KEY, bytes.subarray(0, IV_BYTES));
  const clear = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES)), decipher.final()]);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(clear);
  } catch (cause) {
    throw new Error('a password is not obscured as rclone does it', { cause });
  }
}
