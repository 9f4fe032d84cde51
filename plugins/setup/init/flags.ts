/** The options of `mountkeeper init`. Nothing secret is taken from the command line. */
import { parseArgs } from 'node:util';
import type { NasKind } from 'mountkeeper';
import { KINDS } from '../answers.ts';

export interface InitFlags {
  readonly kind: NasKind | undefined;
  readonly address: string | undefined;
  readonly user: string | undefined;
  /** `-`: standard input. */
  readonly passwordFile: string | undefined;
  /** Undefined: not said. */
  readonly folders: readonly string[] | undefined;
  readonly lanUser: string | undefined;
  readonly lanPasswordFile: string | undefined;
  readonly noLan: boolean;
  /** Adds to a configuration that has shares already. */
  readonly add: boolean;
  readonly yes: boolean;
}

/** Returns a sentence when the arguments are wrong. */
export function readFlags(args: readonly string[]): InitFlags | string {
  const secret = args.find((word) => /^--(?:lan-)?password(?:=|$)/.test(word));
  if (secret !== undefined)
    return (
      'a password on the command line can be read by every user of this machine; ' +
      'name a file that holds it, with --password-file or --lan-password-file'
    );
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        address: { type: 'string' },
        kind: { type: 'string' },
        user: { type: 'string' },
        'password-file': { type: 'string' },
        folders: { type: 'string' },
        folder: { type: 'string', multiple: true },
        'lan-user': { type: 'string' },
        'lan-password-file': { type: 'string' },
        'no-lan': { type: 'boolean' },
        add: { type: 'boolean' },
        yes: { type: 'boolean' },
      },
    });
    const { kind } = values;
    if (kind !== undefined && !(KINDS as readonly string[]).includes(kind))
      return `--kind is one of ${KINDS.join(', ')}`;
    if (values['no-lan'] === true && values['lan-user'] !== undefined)
      return '--no-lan and --lan-user exclude each other';
    return {
      kind: kind as NasKind | undefined,
      address: values.address,
      user: values.user,
      passwordFile: values['password-file'],
      folders: foldersOf(values.folders, values.folder),
      lanUser: values['lan-user'],
      lanPasswordFile: values['lan-password-file'],
      noLan: values['no-lan'] ?? false,
      add: values.add ?? false,
      yes: values.yes ?? false,
    };
  } catch (error) {
    return (error as Error).message;
  }
}

/** `--folders` splits at commas; `--folder` takes one folder as it is written. */
function foldersOf(
  list: string | undefined,
  single: readonly string[] | undefined,
): readonly string[] | undefined {
  if (list === undefined && single === undefined) return undefined;
  const listed = (list ?? '').split(',').map((folder) => folder.trim());
  const all = [...(list === undefined ? [] : listed), ...(single ?? [])];
  return [...new Set(all.map(plainFolder))];
}

/** Without slashes at either end; the root is empty. */
export function plainFolder(folder: string): string {
  return folder
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
