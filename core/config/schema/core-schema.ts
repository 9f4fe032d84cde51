/** The core's own keys: connections, shares, cache, supervisor, bandwidth, web, log and plugins. */
import Joi from 'joi';
import type { ArraySchema, ObjectSchema, StringSchema } from 'joi';
import { shareNameProblem } from './share-name.ts';
import {
  duration,
  filePath,
  LONGEST_PATH,
  rate,
  secretReference,
  size,
  tls,
} from '../../sdk/config-types.ts';

const HOST_NAME = /^(?!.*\.\.)[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;
const NO_PROXY = {
  'string.ip': '{{#label}} must be an address or a range such as "10.0.0.0/8"',
  'string.ipVersion': '{{#label}} must be an address or a range such as "10.0.0.0/8"',
};
/** Longer waits overflow Node's timers. */
const LONGEST_WAIT = '24d';
export const LOG_LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

function plainText(): StringSchema {
  return Joi.string()
    .pattern(/^[^\x00-\x1f\x7f]*$/)
    .messages({ 'string.pattern.base': '{{#label}} holds a control character' });
}

function connection(): ObjectSchema {
  return Joi.object({
    name: Joi.string()
      .pattern(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/)
      .required()
      .example('nas')
      .messages({
        'string.pattern.base':
          '{{#label}} must be 1 to 32 letters, digits, "_" or "-", beginning with a letter or digit',
      })
      .description('Name of the connection, unique, that shares refer to.'),
    type: Joi.string()
      .pattern(/^[A-Za-z0-9][A-Za-z0-9 _-]{0,63}$/)
      .required()
      .example('sftp')
      .messages({
        'string.pattern.base':
          '{{#label}} must be the name of an rclone backend, such as "sftp", "smb", "webdav", "s3" or "local"',
      })
      .description('The rclone backend: "sftp", "smb", "webdav", "s3", "local" and so on.'),
    options: Joi.object()
      .pattern(
        /^[A-Za-z0-9_-]+$/,
        Joi.alternatives(Joi.string().allow(''), Joi.number(), Joi.boolean(), secretReference()).messages({
          'alternatives.types':
            '{{#label}} must be a text, a number, true or false, or a reference to a secret',
          'alternatives.match':
            '{{#label}} must be a text, a number, true or false, or a reference to a secret',
        }),
      )
      .default({})
      .example({ host: 'nas.example.org', user: 'mountkeeper', pass: { env: 'NAS_PASSWORD' } })
      .description(
        "Options of the backend, by rclone's own names. " +
          'Passwords are given in clear, or better as { env = "NAME" }, { file = "/path" } or { ' +
          'credential = "name" }.',
      ),
  });
}

/**
 * rclone names cache folders after remote paths: with `..` it would take files of this machine for cached
 * ones.
 */
function remotePath(): StringSchema {
  return plainText()
    .max(LONGEST_PATH)
    .custom((value: string, helpers) =>
      value.split(/[/\\]/).includes('..')
        ? helpers.message({
            custom: '{{#label}} holds "..", which no path on a remote may; write the path that is meant',
          })
        : value,
    );
}

/** As in `exporter:<protocol>`. */
export const PROTOCOL = /^[a-z][a-z0-9-]*$/;

/** The order in which documents have always listed them; others come after. */
export const USUAL_PROTOCOLS: readonly string[] = ['smb', 'nfs', 'webdav'];

/** A user of one of the servers, or where groups may be named a group: `@office`. */
function userName(): StringSchema {
  return Joi.string()
    .pattern(/^[^:\x00-\x1f\x7f]{1,64}$/)
    .messages({
      'string.pattern.base': '{{#label}} must be the name of a user, of 1 to 64 characters without a colon',
    });
}

/** An empty list would read as "nobody" and mean "everybody". */
function usersOfShare(description: string): ArraySchema {
  return Joi.array()
    .items(userName())
    .min(1)
    .max(1_000)
    .optional()
    .messages({
      'array.min':
        '{{#label}} names nobody; leave the key out to let every user in, or name a group without members for nobody',
    })
    .meta({ tier: 'protocol', names: 'login', entry: true })
    .description(description);
}

/** Members are users: a group within a group is refused. */
function groups(): ObjectSchema {
  return Joi.object()
    .pattern(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/,
      Joi.array()
        .items(
          userName().pattern(/^@/, { invert: true }).messages({
            'string.pattern.invert.base':
              '{{#label}} begins with "@", as groups do; a group holds users alone',
          }),
        )
        .max(1_000),
    )
    .messages({
      'object.unknown':
        '"{{#child}}" is no name of a group; use up to 32 letters, digits, ".", "_" and "-", and begin with a letter ' +
        'or digit',
    })
    .default({})
    .example({ office: ['anna', 'ben'] })
    .meta({ tier: 'protocol', entry: true })
    .description(
      'Groups of users, each a list under its name of up to 32 letters, digits, ".", "_" and "-"; shares name ' +
        'them with a leading "@". They are no groups of this machine, which are never asked.',
    );
}

/** Keys of a share that belong to the core; plugins add theirs. */
export function shareKeys(): ObjectSchema {
  return Joi.object({
    name: Joi.string()
      .required()
      .example('photos')
      .custom((value: string, helpers) => {
        const reason = shareNameProblem(value);
        return reason === undefined
          ? value
          : helpers.message({ custom: '{{#label}} {{#reason}}' }, { reason });
      })
      .description(
        'Name of the share: letters, digits, ".", "_", "-" and inner spaces, up to 63; unique, whatever the case.',
      ),
    connection: Joi.string()
      .required()
      .meta({ names: 'connection' })
      .example('nas')
      .description('Name of the connection that it uses.'),
    remote_path: remotePath()
      .allow('')
      .default('')
      .example('/volume1/photos')
      .description('Path on the remote, without ".."; empty for its root.'),
    mount_point: filePath()
      .pattern(/^\//, 'absolute')
      .example('/srv/photos')
      .messages({ 'string.pattern.name': '{{#label}} must be an absolute path' })
      .description(
        "Folder where it is mounted; absolute. Left out: a folder of the share's name below the mount root.",
      ),
    read_only: Joi.boolean().default(false).description('Refuse every change.'),
    protocols: Joi.array()
      .items(Joi.string().pattern(PROTOCOL, 'protocol'))
      .unique()
      .max(100)
      .example([...USUAL_PROTOCOLS])
      .messages({ 'string.pattern.name': '{{#label}} must be a name of small letters, digits and hyphens' })
      .meta({ tier: 'protocol', names: 'protocol' })
      .description(
        'Which of the enabled protocols show it: those of the plugins smb, nfs and webdav, ' +
          'and of others that bring one. Left out: all there are.',
      ),
    users: usersOfShare(
      'Who may enter it over SMB and WebDAV: users of these servers, and groups such as "@office". Named in ' +
        'neither this nor read_only_users: every user. NFS knows no users: see clients.',
    ).example(['anna', '@office']),
    read_only_users: usersOfShare(
      'Who may enter it over SMB and WebDAV and change nothing, also where users names them, too.',
    ).example(['ben']),
  }).meta({ tier: 'per-share' });
}

export function connectionsKey(): ArraySchema {
  return Joi.array()
    .items(connection())
    .max(1_000)
    .required()
    .meta({ tier: 'per-share' })
    .description('The remotes.');
}

export function sharesKey(share: ObjectSchema): ArraySchema {
  return Joi.array()
    .items(share)
    .max(1_000)
    .default([])
    .meta({ tier: 'per-share' })
    .description('What is mounted, from which connection.');
}

function cache(): ObjectSchema {
  return Joi.object({
    dir: filePath()
      .default('/var/cache/mountkeeper')
      .meta({ fileOnly: true })
      .description('Folder of the cache, on a local disk. Each share has a folder of its own below it.'),
    max_size: size()
      .default('0')
      .description('Most that the cache of one share may take; "0" sets no limit of its own.'),
    max_age: duration().default('30d').description('Files not used for this long leave the cache.'),
    min_free_space: size().default('1G').description('Free space that the cache leaves on its disk.'),
  })
    .meta({ tier: 'global' })
    .description('The cache on the local disk.');
}

function supervisor(): ObjectSchema {
  return Joi.object({
    poll_interval: duration({ min: '200ms', max: '1h' })
      .default('2s')
      .description('Time between two checks of every share.'),
    stop_timeout: duration({ max: LONGEST_WAIT })
      .default('10m')
      .description('How long a stop waits for files that are not yet on the remote.'),
    state_dir: filePath()
      .default('/var/lib/mountkeeper')
      .meta({ tier: 'restart', fileOnly: true })
      .description('Folder for records and generated files.'),
  })
    .meta({ tier: 'live' })
    .description('The supervising loop.');
}

function bandwidth(): ObjectSchema {
  return Joi.object({
    up: rate()
      .default('0')
      .description('Upload limit of the whole daemon, such as "10M" for 10 MiB/s; "0" is unlimited.'),
    down: rate().default('0').description('Download limit of the whole daemon; "0" is unlimited.'),
  })
    .meta({ tier: 'live' })
    .description('The whole budget, divided over the shares.');
}

function web(): ObjectSchema {
  return Joi.object({
    listen: Joi.alternatives(Joi.string().ip({ cidr: 'forbidden' }), Joi.string().pattern(HOST_NAME))
      .default('127.0.0.1')
      .meta({ type: 'string', names: 'address' })
      .messages({
        'alternatives.match':
          '{{#label}} must be an address, such as "127.0.0.1", "0.0.0.0" or "::", or a host name',
        'alternatives.types': '{{#label}} must be a text',
      })
      .description(
        'Address that the dashboard and the API listen on. Set a password before listening further than this machine.',
      ),
    port: Joi.number()
      .port()
      .default(8090)
      .description('Port of the dashboard and the API; 0 takes any free one.'),
    hostnames: Joi.array()
      .items(
        Joi.string().pattern(HOST_NAME).messages({ 'string.pattern.base': '{{#label}} must be a host name' }),
      )
      .max(1_000)
      .default([])
      .description('Names, beside localhost and addresses, under which the service may be addressed.'),
    trusted_proxies: Joi.array()
      .items(Joi.string().ip({ cidr: 'optional' }).messages(NO_PROXY))
      .max(100)
      .default([])
      // Whoever is named may say of every request where it comes from, and is sent passwords in clear.
      .meta({ fileOnly: 'but-default' })
      .description(
        'Addresses, or ranges such as "10.0.0.0/8", of the proxies whose Forwarded or X-Forwarded-For header ' +
          'says who a client is, to the API and to WebDAV. None: these headers count for nothing.',
      ),
    tls: tls()
      .keys({
        hsts: Joi.boolean()
          .default(false)
          .description(
            'Tell browsers to come to this host by TLS alone for a year, on every port. ' +
              'They take it from a certificate that they trust.',
          ),
      })
      .description('Speak TLS, and nothing else, on this port. Left out: plain HTTP.'),
    plain_http: Joi.boolean()
      .optional()
      .example(false)
      .meta({ fileOnly: true })
      .description(
        'Without TLS, take passwords, tokens and sign-ins from other machines, too, though everybody on the way can ' +
          'read them. Left out: over plain HTTP they are taken from this machine and from trusted_proxies alone.',
      ),
  })
    .meta({ tier: 'live' })
    .description('The dashboard and the API.');
}

function log(): ObjectSchema {
  return Joi.object({
    file: filePath()
      .allow('')
      .default('')
      .meta({ fileOnly: true })
      .description('File that log lines are appended to; empty: standard error, and no log in the API.'),
    level: Joi.string()
      .valid(...LOG_LEVELS)
      .default('info')
      .description('Lowest level that is logged.'),
  })
    .meta({ tier: 'restart' })
    .description('The log. A change waits for the restart.');
}

/** Keys directly in `[plugins]`; every discovered plugin has a table next to them. */
export function pluginsKeys(): ObjectSchema {
  return Joi.object({
    dirs: Joi.array()
      .items(filePath())
      .max(100)
      .default([])
      .meta({ fileOnly: true })
      .description(
        'Folders with plugins of third parties. Each runs in a process of its own without the rights of root, ' +
          'or, where its table says so, in one that several share (isolation = "shared") or inside the daemon ' +
          '(isolation = "none").',
      ),
    install_from_page: Joi.boolean()
      .default(false)
      .meta({ fileOnly: true })
      .description(
        'Whether administrators who are signed in may search the registry for plugins, and install, update and ' +
          'remove them on the dashboard. Who knows their password then brings code to this machine. What is ' +
          'installed stays off until this file switches it on; a new version of one that is on runs at once. ' +
          'Refused where nobody is asked for a password.',
      ),
  })
    .meta({ tier: 'live' })
    .description('Plugins.');
}

/** The core's sections in the order of the written file. */
export function coreSections(): readonly (readonly [name: string, schema: ObjectSchema])[] {
  return [
    ['cache', cache()],
    ['supervisor', supervisor()],
    ['bandwidth', bandwidth()],
    ['groups', groups()],
    ['web', web()],
    ['log', log()],
  ];
}
