/** Random and mutated configuration documents from a seed, so that a failure can be had again. */
import { parse } from 'smol-toml';

export type Random = () => number;

/** Mulberry32. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const SPLINTERS = [
  '"',
  "'''",
  '[[',
  ']',
  '=',
  '\n',
  '#',
  '\0',
  '💾',
  '\\u0000',
  '[plugins]',
  'enabled = maybe',
  '{ env = "NOT_SET" }',
  '9e999',
  '-1',
  'true',
  '""',
  '__proto__ = 1\n',
  '"10h"',
  '"-5s"',
  '照片',
];
const VALUES = [
  '""',
  '"0"',
  '"5s"',
  '"1000000h"',
  '-1',
  '0',
  '65536',
  '3.5',
  'true',
  '[]',
  '{}',
  '[[]]',
  '"*/5 * * * *"',
  '"********"',
  '1979-05-27T07:32:00Z',
  '"../../etc"',
  '"a\\u0000b"',
  '"📁"',
];
/** Harmless changes: a document that is accepted must come to run. */
const ACCEPTED = [
  (random: Random): string => `[bandwidth]\nup = "${1 + Math.floor(random() * 50)}M"\n`,
  (random: Random): string => `[probe]\ntimeout = "${5 + Math.floor(random() * 60)}s"\n`,
  (random: Random): string => `[plugins.example]\nenabled = ${random() < 0.5}\n`,
  (random: Random): string => `[notifications]\nwriteback_depth = ${Math.floor(random() * 1e6)}\n`,
];

function mutateText(text: string, random: Random): string {
  const at = Math.floor(random() * text.length);
  switch (Math.floor(random() * 4)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1 + Math.floor(random() * 30));
    case 1:
      return text.slice(0, at) + pick(random, SPLINTERS) + text.slice(at);
    case 2:
      return text.slice(0, at);
    default:
      return text.slice(0, at) + text.slice(Math.floor(random() * text.length));
  }
}

function mutateValue(text: string, random: Random): string {
  const lines = text.split('\n');
  const keyed = lines.flatMap((line, index) => (/^\w+ = /.test(line) ? [index] : []));
  const index = pick(random, keyed);
  lines[index] = `${lines[index]?.split(' = ')[0]} = ${pick(random, VALUES)}`;
  return lines.join('\n');
}

function shuffleLines(text: string, random: Random): string {
  const lines = text.split('\n');
  const [taken] = lines.splice(Math.floor(random() * lines.length), 1);
  lines.splice(Math.floor(random() * lines.length), 0, taken ?? '');
  return lines.join('\n');
}

function noise(random: Random): string {
  return Array.from({ length: Math.floor(random() * 400) }, () =>
    String.fromCodePoint(32 + Math.floor(random() * (random() < 0.9 ? 95 : 50_000))),
  )
    .join('')
    .replace(/[\ud800-\udfff]/g, '');
}

function anyDocument(base: string, random: Random): string {
  const kind = random();
  if (kind < 0.05) return noise(random);
  if (kind < 0.45) return mutateText(base, random);
  if (kind < 0.7) return mutateValue(base, random);
  if (kind < 0.8) return shuffleLines(base, random);
  return `${pick(random, ACCEPTED)(random)}\n${base}`;
}

/**
 * What must stay as it is: a daemon that obeys other paths or another port would leave the test's own room.
 */
function keepsItsRoom(document: string, base: string): boolean {
  const rooms = [document, base].map((text) => {
    const { web, mount, cache, supervisor, log, connections, shares } = parse(text) as Record<
      string,
      Record<string, unknown> | undefined
    >;
    const passwords = Array.isArray(connections)
      ? connections.map((one: { options?: { pass?: unknown } }) => one.options?.pass)
      : [];
    const mountPoints = Array.isArray(shares)
      ? shares.flatMap((one: { mount_point?: unknown }) => one.mount_point ?? [])
      : [];
    return JSON.stringify([
      web,
      mount?.['root'],
      mount?.['rclone'],
      cache?.['dir'],
      supervisor?.['state_dir'],
      log,
      passwords,
      mountPoints,
    ]);
  });
  return rooms[0] === rooms[1];
}

/** A document made of `base`: noise, mutated, or one that ought to be accepted. */
export function strangeDocument(base: string, random: Random): string {
  for (;;) {
    const document = anyDocument(base, random);
    try {
      if (keepsItsRoom(document, base)) return document;
    } catch {
      return document;
    }
  }
}
