/**
 * IPv4 addresses inside IPv6 addresses: the network, or the kernel, forwards a connection to the IPv6
 * address to the IPv4 one.
 */

/**
 * The IPv4 addresses that an IPv6 address leads to, or may lead to, in dotted form; empty for most.
 * `address` has no zone.
 */
export function embeddedAddresses(address: string): readonly string[] {
  const words = wordsOf(address);
  return FORMS.filter(({ holds }) => holds(words)).flatMap(({ read }) => read(words));
}

type Words = readonly number[];

interface Form {
  readonly holds: (words: Words) => boolean;
  readonly read: (words: Words) => readonly string[];
}

const startsWith =
  (...start: readonly number[]) =>
  (words: Words): boolean =>
    start.every((word, index) => words[index] === word);
const lastWords = (words: Words): readonly string[] => [dotted(at(words, 6), at(words, 7))];

const FORMS: readonly Form[] = [
  // Mapped ::ffff:a.b.c.d and compatible ::a.b.c.d (RFC 4291), translated ::ffff:0:a.b.c.d (RFC 7915).
  { holds: startsWith(0, 0, 0, 0, 0, 0xffff), read: lastWords },
  { holds: startsWith(0, 0, 0, 0, 0, 0), read: lastWords },
  { holds: startsWith(0, 0, 0, 0, 0xffff, 0), read: lastWords },
  // NAT64's well-known prefix (RFC 6052), and its local-use one in every length that fits (RFC 8215).
  { holds: startsWith(0x64, 0xff9b, 0, 0, 0, 0), read: lastWords },
  {
    holds: startsWith(0x64, 0xff9b, 1),
    read: (words) => [...lastWords(words), ...insideNat64(words)].filter(isFilled),
  },
  // 6to4 (RFC 3056) and Teredo (RFC 4380), which contains its server's address as it is and its client's
  // inverted.
  { holds: startsWith(0x2002), read: (words) => [dotted(at(words, 1), at(words, 2))] },
  {
    holds: startsWith(0x2001, 0),
    read: (words) => [
      dotted(at(words, 2), at(words, 3)),
      dotted(0xffff - at(words, 6), 0xffff - at(words, 7)),
    ],
  },
  // ISATAP (RFC 5214), after any prefix.
  { holds: (words) => (words[4] === 0 || words[4] === 0x200) && words[5] === 0x5efe, read: lastWords },
];

/** After a prefix of 48, 56 or 64 bits; bits 64 to 71 belong to no address. */
function insideNat64(words: Words): readonly string[] {
  const bytes = words.flatMap((word) => [Math.floor(word / 256), word % 256]);
  return [6, 7, 8].map((start) => {
    const rest = bytes.slice(start).filter((_, index) => start + index !== 8);
    return rest.slice(0, 4).join('.');
  });
}

/** With an unknown prefix length, zeros are only padding. */
function isFilled(address: string): boolean {
  return !address.startsWith('0.');
}

function at(words: Words, index: number): number {
  return words[index] ?? 0;
}

function dotted(high: number, low: number): string {
  return [Math.floor(high / 256), high % 256, Math.floor(low / 256), low % 256].join('.');
}

/**
 * The eight words of an address. The URL parser normalises every notation: hexadecimal, with `::` for a run
 * of zeros.
 */
function wordsOf(address: string): Words {
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const before = parsed(head);
  const after = parsed(tail ?? '');
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function parsed(text: string): number[] {
  return text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));
}
