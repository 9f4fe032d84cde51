/** What may follow each subcommand, read from its usage line: for completions. */
import type { CliCommand } from '../core/contract/cli.ts';

export type Described = Pick<CliCommand, 'name' | 'usage' | 'summary'>;

export interface Grammar {
  readonly name: string;
  readonly summary: string;
  /** With their dashes; `hasValue` where one follows. */
  readonly options: readonly { readonly name: string; readonly hasValue: boolean }[];
  /** What may stand first: one of these words, a share, a folder, or nothing that is known. */
  readonly first: { readonly words: readonly string[] } | 'share' | 'folder' | 'nothing';
}

/** No dash within a word (`log-level`) begins one. */
const OPTION = /(?<![\w-])(--?[a-z][a-z-]*)(?:[ =](?:[A-Z]+|\d\w*)\b)?/g;

export function grammarOf({ name, usage, summary }: Described): Grammar {
  const options = [...usage.matchAll(OPTION)].map(([whole, option = '']) => ({
    name: option,
    hasValue: whole !== option,
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

function firstOf(usage: string): Grammar['first'] {
  const bare = usage.replaceAll(OPTION, '').replace(/^[[\s]+/, '');
  if (/^SHARE\b/.test(bare)) return 'share';
  if (/^(?:DIR|FOLDER)\b/.test(bare)) return 'folder';
  const words = bare.split('|').flatMap((one) => /^\s*([a-z][a-z-]*)\b/.exec(one)?.[1] ?? []);
  return words.length > 0 ? { words } : 'nothing';
}
