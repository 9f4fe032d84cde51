/**
 * Texts that make a backtracking engine work: runs of what a pattern's own parts match, behind what leads to
 * that part, with an end that does not fit. Few are the worst possible, but whatever is quadratic shows in
 * one of them.
 */
import { RegExpParser } from '@eslint-community/regexpp';
import type { AST } from '@eslint-community/regexpp';

export interface Attack {
  readonly head: string;
  /** Repeated until the text is long enough. */
  readonly run: string;
  readonly tail: string;
}

/** What many patterns begin with, whatever they are. */
const USUAL = [
  ' ',
  '\t',
  '\n',
  '\r\n',
  '.',
  '/',
  '\\',
  '0',
  '-',
  ':',
  ',',
  'a',
  'A',
  'é',
  '词',
  'a=',
  'a =',
  ' a',
  '1.',
  '.1',
  '[',
  '(',
  '<',
  '{',
  '"',
  "'",
  '%',
  '%(',
  '\0',
];
const TAILS = ['\0', '\n\0', ''];
/** Candidates for a class: its own characters come first. */
const POOL = [
  'a',
  'Z',
  '0',
  '_',
  '-',
  '.',
  ' ',
  '/',
  ':',
  '@',
  'é',
  '词',
  '\t',
  '\n',
  '\0',
  '\u0301',
  '\u200e',
  '\ud800',
  '😀',
  '"',
  '=',
];
/** Parts in a row that one run may hold. */
const LONGEST_RUN = 4;

/** Texts for one pattern, made of its own parts. */
export function attacksOn(source: string, flags: string): readonly Attack[] {
  const pattern = new RegExpParser().parsePattern(source, 0, source.length, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  });
  const found = new Map<string, Attack>();
  const add = (head: string, run: string): void => {
    if (run === '') return;
    // Something in front keeps a run from being eaten whole by a branch that begins at the beginning.
    for (const front of head === '' ? ['', '\0'] : [head]) {
      for (const tail of TAILS) found.set(JSON.stringify([front, run, tail]), { head: front, run, tail });
    }
  };
  for (const run of USUAL) found.set(run, { head: '', run, tail: '\0' });
  for (const alternative of pattern.alternatives) below(alternative, { head: '', flags, add });
  return [...found.values()];
}

interface Walk {
  readonly head: string;
  readonly flags: string;
  readonly add: (head: string, run: string) => void;
}

function below(alternative: AST.Alternative, walk: Walk): void {
  const parts = partsOf(alternative);
  const words = parts.map((part) => part.map((element) => matched(element, walk.flags)).join(''));
  parts.forEach((part, index) => {
    const before = words.slice(0, index).join('');
    for (let end = index + 1; end <= Math.min(words.length, index + LONGEST_RUN); end += 1) {
      const run = words.slice(index, end).join('');
      walk.add('', run);
      walk.add(walk.head + before, run);
    }
    // What is found again and again and never completed.
    walk.add('', before);
    for (const inner of part.flatMap(alternativesOf)) below(inner, { ...walk, head: walk.head + before });
  });
  walk.add('', words.join(''));
}

/** Characters in a row are one part: an engine has no choice inside them. */
function partsOf({ elements }: AST.Alternative): readonly (readonly AST.Element[])[] {
  const parts: AST.Element[][] = [];
  for (const element of elements) {
    const last = parts.at(-1);
    if (element.type === 'Character' && last?.at(-1)?.type === 'Character') last.push(element);
    else parts.push([element]);
  }
  return parts;
}

function alternativesOf(element: AST.Element): readonly AST.Alternative[] {
  if (element.type === 'Quantifier') return alternativesOf(element.element);
  if (element.type === 'Group' || element.type === 'CapturingGroup') return element.alternatives;
  return element.type === 'Assertion' && (element.kind === 'lookahead' || element.kind === 'lookbehind')
    ? element.alternatives
    : [];
}

/** A short text that the element matches; empty where it matches nothing by itself. */
function matched(element: AST.Element, flags: string): string {
  switch (element.type) {
    case 'Character':
      return String.fromCodePoint(element.value);
    case 'CharacterSet':
    case 'CharacterClass':
    case 'ExpressionCharacterClass':
      return oneOf(element.raw, flags);
    case 'Quantifier':
      return matched(element.element, flags).repeat(Math.max(1, Math.min(element.min, 64)));
    case 'Group':
    case 'CapturingGroup':
      return (element.alternatives[0]?.elements ?? []).map((inner) => matched(inner, flags)).join('');
    default:
      return '';
  }
}

function oneOf(raw: string, flags: string): string {
  const one = new RegExp(`^${raw}$`, flags.replace(/[gym]/g, ''));
  return [...POOL, ...raw].find((candidate) => one.test(candidate)) ?? '';
}
