/** What an import adds to the configuration: the tables, and a file of its own for each secret. */
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { editToml, undefinedWhenMissing } from 'mountkeeper';
import type { ConfigApplied, ConfigService, ConnectionConfig, TomlEdit } from 'mountkeeper';
import { freeConnectionName, shareNames } from '../answers.ts';
import { prepareFile } from '../offline.ts';
import { untilDone } from '../terminal/until-done.ts';
import type { Imported } from './imported.ts';
import { writeSecrets } from './secret-files.ts';
import type { SecretFile } from './secret-files.ts';

export interface Draft {
  /** With its secrets in clear, to try the NAS with. */
  readonly clear: ConnectionConfig;
  readonly share: { readonly name: string; readonly remote_path?: string };
  /** What is added, as TOML; secrets are references to files. */
  readonly toml: string;
  readonly secrets: readonly SecretFile[];
  readonly edits: readonly TomlEdit[];
}

const PLAIN_OPTION = /^[a-z0-9_]{1,64}$/i;

/** Throws a sentence. `name`: of the share, where somebody has said one. */
export async function draftOf(imported: Imported, config: ConfigService, name?: string): Promise<Draft> {
  const { connections, shares } = config.current.config;
  const [shareName = 'files'] = shareNames(
    [name ?? imported.name],
    shares.map((one) => one.name),
  );
  const connectionName = freeConnectionName(imported.name, connections);
  for (const option of imported.options.keys())
    if (!PLAIN_OPTION.test(option)) throw new Error('an option has a name that no backend of rclone has');
  const clear: ConnectionConfig = {
    name: connectionName,
    type: imported.type,
    options: Object.fromEntries(imported.options),
  };
  const share = {
    name: shareName,
    connection: connectionName,
    ...(imported.remotePath !== '' && { remote_path: imported.remotePath }),
    ...(imported.readOnly && { read_only: true }),
  };
  const secrets = new Map<string, SecretFile>();
  for (const option of secretOptions(clear, config))
    secrets.set(option, {
      path: await freePath(join(dirname(config.file), 'secrets', `${connectionName}-${option}`)),
      value: imported.options.get(option) ?? '',
    });
  const options = Object.fromEntries(
    [...imported.options].map(([option, value]) => {
      const secret = secrets.get(option);
      return [option, secret ? { file: secret.path } : value];
    }),
  );
  const tables = [{ ...clear, options }, share] as const;
  const at = (first: number, second: number): readonly TomlEdit[] => [
    { path: ['connections', first], value: tables[0] },
    { path: ['shares', second], value: tables[1] },
  ];
  return {
    clear,
    share,
    toml: editToml('', at(0, 0)),
    secrets: [...secrets.values()],
    edits: at(connections.length, shares.length),
  };
}

/** What the configuration itself would not show to those who may read it. */
function secretOptions(connection: ConnectionConfig, config: ConfigService): readonly string[] {
  const isSecret = config.secretsIn({ connections: [connection] });
  return Object.entries(connection.options ?? {}).flatMap(([option, value]) =>
    value !== '' && isSecret(['connections', 0, 'options', option]) ? [option] : [],
  );
}

async function freePath(wanted: string): Promise<string> {
  let path = wanted;
  for (let number = 2; (await lstat(path).catch(undefinedWhenMissing)) !== undefined; number += 1)
    path = `${wanted}-${number}`;
  return path;
}

/**
 * All of it, or nothing: secrets whose configuration was refused are removed again. They are there first, for
 * a check of the configuration reads them.
 */
export function writeDraft(draft: Draft, config: ConfigService): Promise<ConfigApplied> {
  return untilDone(async () => {
    const undo = await writeSecrets(draft.secrets);
    try {
      const applied = await config.apply({
        text: ({ text }) => editToml(text, draft.edits),
        origin: 'file',
        beforeWrite: () => prepareFile(config.file),
      });
      if (!applied.ok) await undo();
      return applied;
    } catch (error) {
      await undo();
      throw error;
    }
  });
}
