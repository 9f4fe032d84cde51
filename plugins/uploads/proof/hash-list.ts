/**
 * Writes a receipt as a media hash list, version 2.0 (ASC MHL, of the American Society of Cinematographers).
 * The actions are `original`, since it is the first list of its files: tools verify against originals alone.
 */
import type { ProvedFile, Receipt } from './receipt.ts';

export interface HashListOptions {
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly host: string;
  /** Of the plugin. */
  readonly version: string;
  readonly share: string;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Ends with a line feed. Paths are relative to the receipt's root. */
export function hashListOf(receipt: Receipt, { createdAt, host, version, share }: HashListOptions): string {
  const { root, proved } = receipt;
  const where = root === '' ? `Share ${share}` : `Share ${share}, folder ${root}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">',
    '  <creatorinfo>',
    `    <creationdate>${timeOf(createdAt)}</creationdate>`,
    `    <hostname>${escaped(host)}</hostname>`,
    `    <tool version="${escaped(version)}">Mountkeeper (plugin uploads)</tool>`,
    `    <comment>${escaped(`${where}: ${summaryOf(receipt)}`)}</comment>`,
    '  </creatorinfo>',
    '  <processinfo>',
    '    <process>in-place</process>',
    '  </processinfo>',
    ...(proved.length === 0 ? [] : ['  <hashes>', ...proved.map(hashOf), '  </hashes>']),
    '</hashlist>',
    '',
  ].join('\n');
}

/** For people. */
export function summaryOf({ proved, unproved }: Receipt): string {
  const remoteOnly = proved.filter(({ isCompared }) => !isCompared).length;
  const only = remoteOnly === 0 ? '' : ` (${remoteOnly} of them lie on the remote alone)`;
  return `${proved.length} files are proved to be on the remote${only}, ${unproved.length} entries are not.`;
}

function hashOf({ path, bytes, modifiedMs, hash, provedAt }: ProvedFile): string {
  const modified = modifiedMs === undefined ? '' : ` lastmodificationdate="${timeOf(modifiedMs)}"`;
  return [
    '    <hash>',
    `      <path size="${bytes}"${modified}>${escaped(path)}</path>`,
    `      <${hash.kind} action="original" hashdate="${timeOf(provedAt)}">${hash.value}</${hash.kind}>`,
    '    </hash>',
  ].join('\n');
}

function timeOf(at: number): string {
  return new Date(at).toISOString();
}

/** Tabs and line ends as references: readers make spaces or other line ends of bare ones. */
function escaped(text: string): string {
  return text.replace(/[&<>"\t\n\r]/g, (one) => ENTITIES[one] ?? `&#${one.charCodeAt(0)};`);
}
