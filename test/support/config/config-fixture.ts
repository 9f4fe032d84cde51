/** A configuration service with made-up plugins, its own folder and its own clock. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { ConfigContribution } from '../../../core/contract/config.ts';
import { Joi, duration, secret, size } from '../../../core/sdk/index.ts';
import type { ContributionEntry } from '../../../core/config/schema/schema.ts';
import { createSecrets } from '../../../core/config/secrets/secrets.ts';
import { createConfigService } from '../../../core/config/service.ts';
import type { ConfigServiceOptions, OwnedConfigService } from '../../../core/config/service.ts';
import type { ConfigCheck, LoadedConfig } from '../../../core/contract/config.ts';
import type { Processes } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';

/** A connection alone, as TOML. */
export const NAS = `[[connections]]
name = "nas"
type = "sftp"

[connections.options]
host = "nas.example.org"
pass = "correct horse"
`;

/** The connection and one share, as TOML. */
export const PHOTOS = `${NAS}
[[shares]]
name = "photos"
connection = "nas"
`;

/** What a plugin contributes to the schema, as if `owner` had declared it. */
export function entry(
  owner: string,
  contribution: ConfigContribution,
  more: Partial<ContributionEntry> = {},
): ContributionEntry {
  return { owner, contribution, thirdParty: false, enabledByDefault: true, version: '1.0.0', ...more };
}

/** Shaped like the in-tree plugins: a mounter, a guard of the door, and rules in an array of tables. */
export function sampleEntries(): ContributionEntry[] {
  return [
    entry('auth', {
      section: 'web',
      schema: Joi.object({
        username: Joi.string().default('admin').description('User name.'),
        password: secret().default('').description('Password.'),
      }).meta({ tier: 'live' }),
    }),
    entry('mount', {
      section: 'mount',
      schema: Joi.object({
        root: Joi.string().default('/mnt/mountkeeper').description('Where shares are mounted.'),
        buffer_size: size().default('16M').description('Memory per open file.'),
      }).meta({ tier: 'global' }),
      complete: (config) => {
        const { root } = (config as unknown as { mount: { root: string } }).mount;
        for (const share of config.shares) share.mount_point ??= `${root}/${share.name}`;
      },
      harmless: (config) =>
        config.connections.flatMap((_connection, index) =>
          ['host', 'user', 'port', 'key_file', 'url', 'long'].map(
            (name) => `connections[${index}].options.${name}`,
          ),
        ),
    }),
    entry('smb', {
      section: 'smb',
      schema: Joi.object({
        enabled: Joi.boolean().default(false).description('Serve SMB.'),
        users: Joi.array()
          .items(
            Joi.object({
              name: Joi.string().required().example('anna').description('Name.'),
              password: secret().required().description('Password.'),
            }),
          )
          .default([])
          .description('Who may come in.'),
      }).meta({ tier: 'protocol' }),
    }),
    entry('warmup', {
      section: 'warmup',
      schema: Joi.object({
        auto: Joi.boolean().default(true).description('Run the rules by themselves.'),
        rules: Joi.array()
          .items(
            Joi.object({
              share: Joi.string().required().example('photos').description('Share.'),
              path: Joi.string().allow('').default('').description('Path.'),
              newer_than: duration().example('30d').description('Age.'),
            }),
          )
          .default([])
          .description('What is warmed.'),
      })
        .meta({ tier: 'live' })
        .description('Warming the cache.'),
      share: Joi.object({
        dir_refresh_interval: duration()
          .example('5m')
          .description('How often directories are read again.')
          .meta({ tier: 'live' }),
      }),
    }),
  ];
}

/** As the plugins that come with the package provide them. */
export const PROTOCOLS = ['smb', 'nfs', 'webdav'].map((name) => ({
  name,
  plugin: name,
  isProvided: true,
  isNameable: true,
}));

export interface Room {
  readonly folder: string;
  readonly file: string;
  readonly service: OwnedConfigService;
  /** Accepts and runs a document. */
  run(text: string): Promise<LoadedConfig>;
  close(): void;
}

/** A configuration service in a folder of its own, with `text` as its file. `close` removes the folder. */
export function openRoom(
  options: Partial<ConfigServiceOptions> & { env?: NodeJS.ProcessEnv; text?: string } = {},
): Room {
  const folder = mkdtempSync(join(tmpdir(), 'mk-config-'));
  const file = join(folder, 'config.toml');
  if (options.text !== undefined) writeFileSync(file, options.text);
  const entries = sampleEntries();
  const service = createConfigService({
    file,
    entries: () => entries,
    protocols: () => PROTOCOLS,
    services: {
      clock: createClock(),
      secrets: createSecrets({ env: options.env ?? {} }),
      processes: noProcesses,
    },
    log: pino({ level: 'silent' }),
    ...options,
  });
  return {
    folder,
    file,
    service,
    run: async (text) => {
      const loaded = accepted(await service.check(text, 'file'));
      service.commit(loaded);
      return loaded;
    },
    close: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const noProcesses = {} as Processes;

/** The loaded document of a check that passed; throws with its errors otherwise. */
export function accepted(check: ConfigCheck): LoadedConfig {
  if (!check.ok) throw new Error(`refused: ${check.message}`);
  return check.loaded;
}

/** The problems of a document that must be refused. */
export function refused(check: ConfigCheck): Extract<ConfigCheck, { ok: false }> {
  if (check.ok) throw new Error('accepted, although it must be refused');
  return check;
}

/** Configuration services of one test, opened one after the other and closed together. */
export class OpenedRooms {
  readonly #rooms: Room[] = [];

  /** As `openRoom`. */
  open(...options: Parameters<typeof openRoom>): Room {
    const opened = openRoom(...options);
    this.#rooms.push(opened);
    return opened;
  }

  /** Removes the folders of all that were opened. */
  close(): void {
    for (const opened of this.#rooms.splice(0)) opened.close();
  }
}

/** `LINE:COLUMN MESSAGE` of each problem of a document of the file; throws when it is accepted. */
export async function problemsOf(text: string, { service }: Room): Promise<string[]> {
  return refused(await service.check(text, 'file')).problems.map(
    ({ message, line, column }) => `${line ?? '-'}:${column ?? '-'} ${message}`,
  );
}

/** A share on the connection `nas`, as TOML; `more` stands in its table. */
export function shareText(name: string, more = ''): string {
  return `[[shares]]\nname = ${JSON.stringify(name)}\nconnection = "nas"\n${more}\n`;
}
