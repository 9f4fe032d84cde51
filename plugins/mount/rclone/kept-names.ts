/**
 * Names that rclone, or a kind of NAS, does not give back as they are. A file that was uploaded by one would show
 * under another name, and its own would look as if others had deleted it.
 */
import type { UnkeptNames } from 'mountkeeper';

/** `‛` but before rclone's stand-ins for characters that file systems refuse, after it when they are meant. */
const LONE_QUOTE = '^(?:[^‛]|‛[‛／\\u2400-\\u241F\\u2421])*‛(?![‛／\\u2400-\\u241F\\u2421])';
const ANYWHERE: readonly UnkeptNames[] = [
  { pattern: '[\\u0000-\\u001F\\u007F]', because: 'it has a control character' },
  { pattern: LONE_QUOTE, because: 'it has the quotation mark ‛ (U+201B), which rclone uses for itself' },
];
const DEVICES: UnkeptNames = {
  pattern: '^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\\.|$)',
  because: 'SMB servers take it for a device',
};

const MEANT = /[‛／\u2400-\u241F\u2421]/gu;
const DELETE = 0x7f;

/** A path of the local disk as rclone wants it: control characters by their stand-ins, stand-ins after `‛`. */
export function rclonePath(path: string): string {
  const quoted = path.replaceAll(MEANT, '‛$&').replaceAll(/(^|\/)(．{1,2})(?=\/|$)/gu, quoteDots);
  return [...quoted].map((one) => (isControl(one) ? standIn(one) : one)).join('');
}

function quoteDots(_: string, before: string, dots: string): string {
  return `${before}${dots.replaceAll('．', '‛．')}`;
}

function isControl(character: string): boolean {
  return character < ' ' || character === '\x7F';
}

function standIn(character: string): string {
  const code = character.charCodeAt(0);
  return code === DELETE ? '␡' : String.fromCharCode(0x2400 + code);
}

/** Stand-ins of the control characters but NUL, which is none on any disk. `‛`: the stand-in itself is meant. */
const STAND_IN = /(‛)?([\u2401-\u241F\u2421])/gu;

/**
 * A path as rclone shows it, in listings and in its mounts, as the files of its cache have it on the disk: with the
 * control characters themselves (seen with rclone 1.75).
 */
export function cachePath(path: string): string {
  return path.replaceAll(STAND_IN, (_, quote: string | undefined, sign: string) =>
    quote === undefined ? meantBy(sign) : sign,
  );
}

function meantBy(sign: string): string {
  return sign === '␡' ? '\x7F' : String.fromCharCode(sign.charCodeAt(0) - 0x2400);
}

/** Names that a remote of this type (the backend's name in rclone) does not keep. It may still refuse others. */
export function unkeptNames(type: string): readonly UnkeptNames[] {
  return type === 'smb' ? [...ANYWHERE, DEVICES] : ANYWHERE;
}

/** What is wrong with a name, as the end of a sentence; undefined where nothing is known to be. */
export function nameProblem(type: string, name: string): string | undefined {
  return unkeptNames(type).find(({ pattern }) => new RegExp(pattern, 'iu').test(name))?.because;
}
