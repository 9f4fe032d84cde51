/** What a person answers when asked which folders: numbers of a list, names, or where to look next. */
import { plainFolder } from './flags.ts';

export type FolderChoice =
  | { readonly go: string }
  | { readonly chosen: readonly string[] }
  /** What to say before asking again. */
  | { readonly problem: string };

export const FOLDER_HELP =
  'Numbers or names with commas between them; "all"; "2/" looks into folder 2, ".." goes up, "." is this folder.';

/** `names`: the folders in `at`, as they were shown, numbered from 1. */
export function readFolders(answer: string, at: string, names: readonly string[]): FolderChoice {
  const text = answer.trim();
  const whole = names.find((name) => name === text);
  if (whole !== undefined) return { chosen: [join(at, whole)] };
  return readWord(text.toLowerCase(), at, names) ?? readOpened(text, at, names) ?? readList(text, at, names);
}

function readWord(text: string, at: string, names: readonly string[]): FolderChoice | undefined {
  if (text === '..') return { go: at.split('/').slice(0, -1).join('/') };
  if (text === '/') return { go: '' };
  if (text === 'all' && names.length > 0) return { chosen: names.map((name) => join(at, name)) };
  return text === '.' || text === 'all' ? { chosen: [at] } : undefined;
}

function readOpened(text: string, at: string, names: readonly string[]): FolderChoice | undefined {
  const opened = /^([^,]+)\/$/.exec(text)?.[1];
  if (opened === undefined) return undefined;
  const name = nameOf(opened, names);
  return name === undefined ? unknown(opened) : { go: join(at, name) };
}

function readList(text: string, at: string, names: readonly string[]): FolderChoice {
  const chosen: string[] = [];
  for (const word of text.split(',').map((one) => one.trim())) {
    const name = nameOf(word, names);
    if (name === undefined && !word.includes('/')) return unknown(word);
    chosen.push(name === undefined ? plainFolder(word) : join(at, name));
  }
  return { chosen: [...new Set(chosen)] };
}

function join(at: string, name: string): string {
  return at === '' ? name : `${at}/${name}`;
}

/** A folder may be called "2": names go before numbers. */
function nameOf(word: string, names: readonly string[]): string | undefined {
  if (names.includes(word)) return word;
  return /^\d{1,4}$/.test(word) ? names[Number(word) - 1] : undefined;
}

function unknown(word: string): FolderChoice {
  return { problem: `there is no folder "${word}" here` };
}
