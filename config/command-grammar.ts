/** What may follow each subcommand, read from its usage line: for completions. */
import type { CliCommand } from '../core/contract/cli.ts';

export type Described = Pick<CliCommand, 'name' | 'usage' | 'summary'>;

export interface Grammar {
  readonly name: string;
  readonly summary: string;
  /** With their dashes; `hasValue` where one follows. */
  readonly options: readonly Option[];
  /** What may stand first: one of these words, a share, a folder, a file, or nothing that is known. */
  readonly first: { readonly words: readonly string[] } | 'share' | 'folder' | 'file' | 'nothing';
}

export interface Option {
  readonly name: string;
  readonly hasValue: boolean;
  /** What its value is, where that is known: a file, or one of these words. */
  readonly value: 'file' | { readonly words: readonly string[] } | undefined;
}

/** No dash within a word (`log-level`) begins one. */
const OPTION = /(?<![\w-])(--?[a-z][a-z-]*)(?:[ =](?:[A-Z]+|\d\w*|[a-z]+(?:\|[a-z]+)+)\b)?/g;

export function grammarOf({ name, usage, summary }: Described): Grammar {
  const options = [...usage.matchAll(OPTION)].map(([whole, option = '']) => ({
    name: option,
    hasValue: whole !== option,
    value: valueOf(whole.slice(option.length + 1)),
  }));
  return {
    name,
    summary,
    options: options.filter(
      ({ name: one }, at) => one !== '--json' && options.findIndex((other) => other.name === one) === at,
    ),
    first: firstOf(usage),
  };
}

function valueOf(word: string): Option['value'] {
  if (word.includes('|')) return { words: word.split('|') };
  return word === 'FILE' ? 'file' : undefined;
}

function firstOf(usage: string): Grammar['first'] {
  const bare = usage.replaceAll(OPTION, '').replace(/^[[\s]+/, '');
  if (/^SHARE\b/.test(bare)) return 'share';
  if (/^FILE\b/.test(bare)) return 'file';
  if (/^(?:DIR|FOLDER)\b/.test(bare)) return 'folder';
  const words = bare.split('|').flatMap((one) => /^\s*([a-z][a-z-]*)\b/.exec(one)?.[1] ?? []);
  return words.length > 0 ? { words } : 'nothing';
}
