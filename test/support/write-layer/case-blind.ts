/** Ways to a folder that tell neither case nor Unicode forms apart, as SMB servers do. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RemoteFiles } from 'mountkeeper';
import { folded, nameOf, parentOf } from '../../../plugins/uploads/compare/paths.ts';

/** Turns the paths of one call into those that the folder has, or would take new ones by. */
type Spell = (call: string, paths: readonly string[]) => readonly string[];

/** Finds each entry by any spelling, and keeps the one it has, as macOS and Windows do. */
export function caseBlind(files: RemoteFiles, folder: string): RemoteFiles {
  return spelling(files, (_, paths) => paths.map((path) => found(folder, path) ?? path));
}

/**
 * As `caseBlind`, as rclone and smbd before Samba 4.18.7 are together. rclone's calls take the connections by
 * turns, and each has an smbd of its own, which remembers the spelling that something was found by. When that is
 * gone, it gives its spelling to what comes into being by the name (Samba's bug 15481), and forgets it then. The
 * worst case: what one has found, all have.
 */
export function forgetfulSmbd(files: RemoteFiles, folder: string, connections = 40): RemoteFiles {
  const memories = Array.from({ length: connections }, () => new Map<string, string>());
  let calls = 0;
  const next = (): Map<string, string> => memories[(calls += 1) % connections]!;
  const look = (path: string, memory = next()): string => {
    const name = found(folder, path);
    if (name === path) return path;
    const remembered = memory.get(folded(path));
    if (name === undefined) memory.delete(folded(path));
    else for (const one of memories) one.set(folded(path), name);
    return name ?? remembered ?? path;
  };
  return spelling(files, (call, paths) => {
    // Folders are looked for and made by the same connection.
    if (call !== 'moveFile' && call !== 'upload' && call !== 'uploadNew')
      return paths.map((path) => found(folder, look(path)) ?? path);
    for (const path of paths) look(path);
    const connection = next();
    return paths.map((path) => look(path, connection));
  });
}

/** The path under which the folder has the entry; of a new one, with that of the folder that it is in. */
function found(folder: string, path: string): string | undefined {
  const above = parentOf(path) === '' ? '' : (found(folder, parentOf(path)) ?? parentOf(path));
  const names = existsSync(join(folder, above)) ? readdirSync(join(folder, above)) : [];
  const wanted = nameOf(path);
  const name = names.includes(wanted) ? wanted : names.find((one) => folded(one) === folded(wanted));
  return name === undefined ? undefined : join(above, name);
}

function spelling(files: RemoteFiles, spell: Spell): RemoteFiles {
  return new Proxy<RemoteFiles>(files, {
    get: (target, call) => {
      const value: unknown = Reflect.get(target, call, target);
      // Each path by itself, so that its spelling counts.
      if (call === 'uploadAllNew' || call === 'statAll') return undefined;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const spots =
          call === 'upload' || call === 'uploadNew'
            ? [1]
            : call === 'moveFile' || call === 'moveFolder'
              ? [0, 1]
              : [0];
        const given = spots.filter((spot) => typeof args[spot] === 'string' && args[spot] !== '');
        const paths = spell(
          String(call),
          given.map((spot) => String(args[spot])),
        );
        for (const [index, spot] of given.entries()) args[spot] = paths[index];
        return (value as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
