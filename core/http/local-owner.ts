/**
 * Whose a client's socket is, where the client is on this machine: the kernel lists the user of each. A connection has
 * been taken over by nobody as long as ours is the same socket after that was read: until then the client's port is not
 * free. Whatever cannot be told is no answer: a client that has gone already has no user any more.
 */
import { fstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { Socket } from 'node:net';
import { addressGroups } from '../sdk/http/client-address.ts';

/** Of a route of the kernel's: it leads to this machine itself. */
const LOCAL_ROUTE = 0x80_00_00_00;
/** States in which there is no connection yet: another one may be about to take the client's port. */
const COMING: ReadonlySet<string | undefined> = new Set(['02', '03']);

/** `elsewhere`: on another machine. Undefined where it is on this one and cannot be told. */
export async function ownerOf(socket: Socket): Promise<number | 'elsewhere' | undefined> {
  const { localAddress, localPort = 0, remoteAddress, remotePort = 0 } = socket;
  // A connection that was reset has no other side any more.
  if (!remoteAddress) return undefined;
  if (!(await isHere(remoteAddress))) return 'elsewhere';
  if (!localAddress) return undefined;
  const inode = inodeOf(socket);
  const [ours, theirs] = [hexOf(localAddress, localPort), hexOf(remoteAddress, remotePort)];
  // The kernel's list may skip one while others come and go.
  const uid = (await userOf(theirs, ours)) ?? (await userOf(theirs, ours));
  return (await entryOf(ours, theirs))?.inode === inode ? uid : undefined;
}

async function userOf(near: string, far: string): Promise<number | undefined> {
  const entry = await entryOf(near, far);
  return entry && entry.inode !== '0' && !COMING.has(entry.state) ? entry.uid : undefined;
}

async function isHere(address: string): Promise<boolean> {
  const here = new BlockList();
  for (const [net, bits] of ownIn(await listed('fib_trie'))) here.addSubnet(net, bits, 'ipv4');
  for (const [net, bits] of ownIn6(await listed('ipv6_route'))) here.addSubnet(net, bits, 'ipv6');
  const [plain = ''] = address.split('%');
  return here.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}

type Net = readonly [address: string, bits: number];

/** Of the kernel's routes of IPv4 those that lead to this machine itself. */
function ownIn(routes: string): readonly Net[] {
  let leaf = '';
  return routes.split('\n').flatMap((line): Net[] => {
    const [first = '', second = '', kind] = line.trim().split(' ');
    if (first === '|--') leaf = second;
    return kind === 'LOCAL' ? [[leaf, Number(first.slice(1))]] : [];
  });
}

function ownIn6(routes: string): readonly Net[] {
  return routes.split('\n').flatMap((line): Net[] => {
    const [net = '', bits = '', , , , , , , flags = ''] = line.split(/ +/);
    if ((Number.parseInt(flags, 16) & LOCAL_ROUTE) === 0) return [];
    return [[net.match(/.{4}/g)?.join(':') ?? '', Number.parseInt(bits, 16)]];
  });
}

/** What the kernel lists; nothing where it does not know that kind. */
function listed(name: string): Promise<string> {
  return readFile(`/proc/net/${name}`, 'latin1').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/** The open socket with these ends, as the list of either family has it. */
async function entryOf(near: string, far: string) {
  const [four, six] = await Promise.all([listed('tcp'), listed('tcp6')]);
  const find = (list: string, from: number): string | undefined => {
    const at = list.indexOf(` ${near.slice(from)} ${far.slice(from)} `);
    return at < 0 ? undefined : list.slice(at, list.indexOf('\n', at)).trim();
  };
  const line = find(six, 0) ?? find(four, MAPPED.length);
  if (line === undefined) return undefined;
  const [, , state, , , , uid, , inode] = line.split(/ +/);
  return { state, uid: Number(uid), inode };
}

/** Words of four bytes in the machine's own order; IPv4 as the part of IPv6 that stands for it. */
function hexOf(address: string, port: number): string {
  const groups = addressGroups(isIPv4(address) ? `::ffff:${address}` : (address.split('%')[0] ?? ''));
  const words = new Uint32Array(new Uint8Array(groups.flatMap((group) => [group >> 8, group & 255])).buffer);
  const hex = (number: number, length: number): string =>
    number.toString(16).toUpperCase().padStart(length, '0');
  return `${[...words].map((word) => hex(word, 8)).join('')}:${hex(port, 4)}`;
}

const MAPPED = hexOf('0.0.0.0', 0).slice(0, 24);

/** Empty where Node does not say: that is nobody's. */
function inodeOf(socket: Socket): string {
  const { fd = -1 } = (socket as { _handle?: { readonly fd?: number } })._handle ?? {};
  return fd < 0 ? '' : String(fstatSync(fd).ino);
}
