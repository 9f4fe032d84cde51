/**
 * Rules for the name of a share: it is a folder, a name on SMB, a part of URLs and a word on the command
 * line.
 */

/** Samba reads a section's name without its white space, and `globals` as `global`. */
const RESERVED = new Set(['global', 'globals', 'homes', 'printers', 'pipe', 'mailslot']);
const MAX_CHARACTERS = 63;

/** Why a name cannot be used, or undefined. */
export function shareNameProblem(name: string): string | undefined {
  const length = [...name].length;
  if (length < 1 || length > MAX_CHARACTERS)
    return `has ${length} characters; a share's name has 1 to ${MAX_CHARACTERS}`;
  if (name !== name.normalize('NFC'))
    return `"${name}" is spelled with separate accents; write it in composed form (NFC)`;
  if (name !== name.trim()) return `"${name}" begins or ends with a space`;
  if (/[^\p{L}\p{M}\p{N}._\- ]/u.test(name))
    return `"${name}" may hold letters, digits, ".", "_", "-" and inner spaces only`;
  if (/^\.|\.$/.test(name))
    return `"${name}" begins or ends with a dot, which file-sharing clients drop or hide`;
  if (RESERVED.has(name.toLowerCase().replaceAll(/\s/g, '')))
    return `"${name}" is a name that SMB keeps for itself; choose another`;
  return undefined;
}

/** Equal for names that differ in case only, by Unicode's rules. */
export function foldName(name: string): string {
  return name.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC');
}
