/**
 * Names that rclone, or a kind of NAS, does not give back as they are. A file that was uploaded by one would show
 * under another name, and its own would look as if others had deleted it.
 */

/** rclone's stand-ins for characters that file systems refuse, which it writes after `‛` when they are meant. */
const STAND_INS = /‛[‛／\u2400-\u241F\u2421]/gu;
const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)/i;

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

/**
 * What is wrong with a name for a remote of this type (the backend's name in rclone), as the end of a sentence.
 * Undefined where nothing is known to be: the remote itself may still refuse it.
 */
export function nameProblem(type: string, name: string): string | undefined {
  if ([...name].some(isControl)) return 'it has a control character';
  if (name.replaceAll(STAND_INS, '').includes('‛'))
    return 'it has the quotation mark ‛ (U+201B), which rclone uses for itself';
  if (type === 'smb' && DEVICE.test(name)) return 'SMB servers take it for a device';
  return undefined;
}
