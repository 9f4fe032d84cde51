/**
 * Which names of packages may come from the page: those of the registry alone. What the command line would take for a
 * folder, a tarball, an address, a repository, an alias or an option is none.
 */
const NAME = /^(?:@[a-z0-9][a-z0-9._~-]*\/)?[a-z0-9][a-z0-9._~-]*$/;
/** One version, a range of them by its first numbers, or a tag. */
const VERSION = /^(?:[~^]?\d+(?:\.\d+){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?|[a-z][a-z0-9-]*)$/;
/** The registry's own limit. */
const LONGEST_NAME = 214;
const LONGEST_VERSION = 64;
/** The command line takes such a word for a file. */
const FILE = /\.(?:tgz|tar|gz)$/i;

/** `garden`, `@friend/garden`, `garden@1.2.3`, `garden@^1` or `garden@next`. */
export function isPackageSpec(text: string): boolean {
  const at = text.indexOf('@', 1);
  const name = at === -1 ? text : text.slice(0, at);
  if (name.length > LONGEST_NAME || !NAME.test(name) || FILE.test(name) || FILE.test(text)) return false;
  const version = at === -1 ? undefined : text.slice(at + 1);
  return version === undefined || (version.length <= LONGEST_VERSION && VERSION.test(version));
}

const WORD = /^[\p{L}\p{N}@][\p{L}\p{N}._@/-]*$/u;
const MOST_WORDS = 5;
const LONGEST_WORD = 60;

/** What is searched for; none: all plugins. Undefined for what could be more than words. */
export function searchWords(text: string): readonly string[] | undefined {
  if (text.length > MOST_WORDS * (LONGEST_WORD + 1)) return undefined;
  const words = text.split(/\s+/u).filter((word) => word !== '');
  const isPlain = words.every((word) => word.length <= LONGEST_WORD && WORD.test(word));
  return isPlain && words.length <= MOST_WORDS ? words : undefined;
}
