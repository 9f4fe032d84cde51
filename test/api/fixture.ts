/**
 * The API on a real listener: the real plugin host, configuration service, status store and HTTP server,
 * without a supervisor. What would be sent to it is kept in `sent`.
 */
import { mkdirSync } from 'node:fs';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pino from 'pino';
import { Joi, definePlugin } from '../../core/sdk/index.ts';
import type { Clock, Processes } from '../../core/contract/platform.ts';
import type { Commands } from '../../core/contract/commands.ts';
import type { LoadedConfig, Secrets } from '../../core/contract/config.ts';
import type { Notice } from '../../core/contract/notifications.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import type { SharesService } from '../../core/contract/shares.ts';
import type { WebService } from '../../core/contract/http.ts';
import type { Services } from '../../core/contract/services.ts';
import type { ShareStatus, StatusRecord } from '../../core/contract/status.ts';
import { createConfigService } from '../../core/config/service.ts';
import type { OwnedConfigService } from '../../core/config/service.ts';
import { createSecrets } from '../../core/config/secrets/secrets.ts';
import { createHttp } from '../../core/http/http.ts';
import type { Http, HttpOptions } from '../../core/http/http.ts';
import { requesterNow } from '../../core/http/requests.ts';
import { createHost } from '../../core/plugins/host.ts';
import { Contributions } from '../../core/plugins/contributions.ts';
import type { PluginHost } from '../../core/plugins/host.ts';
import { dryRun } from '../../core/plugins/instance/instance.ts';
import { emptyShareStatus, StatusStore } from '../../core/status.ts';
import { createClock } from '../../core/platform/clock.ts';
import { createLogger } from '../../core/platform/log/logger.ts';
import type { LoggerHandle } from '../../core/platform/log/logger.ts';
import auth from '../../plugins/auth/index.ts';
import controlApi from '../../plugins/control-api/index.ts';
import logs from '../../plugins/logs/index.ts';
import presets from '../../plugins/presets/index.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
  json(): unknown;
}

export interface Call {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

export interface Sent {
  readonly command: keyof Commands;
  readonly args: readonly unknown[];
}

export interface ApiFixture {
  readonly folder: string;
  readonly configFile: string;
  readonly config: OwnedConfigService;
  readonly host: PluginHost;
  readonly http: Http;
  readonly status: StatusStore;
  readonly sent: Sent[];
  /** Set: `send` rejects with this sentence. */
  refusal: string | undefined;
  readonly logLines: Record<string, unknown>[];
  /** The daemon's logger, which keeps `logFile` of the options open; nothing is logged to it. */
  readonly logger: LoggerHandle;
  readonly port: number;
  call(call: Call): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  publish(shares: readonly (Partial<ShareStatus> & { name: string })[], record?: Partial<StatusRecord>): void;
  /** As the supervisor does it: makes a document the running one and turns the plugins to it. */
  apply(toml: string): Promise<LoadedConfig>;
  fileText(): Promise<string>;
  close(): Promise<void>;
}

export interface FixtureOptions {
  readonly toml?: string;
  /** What a former daemon left in the state folder, by name. */
  readonly state?: Readonly<Record<string, string>>;
  readonly plugins?: readonly Plugin[];
  readonly env?: NodeJS.ProcessEnv;
  /** Default: the real one. */
  readonly clock?: Clock;
  readonly http?: Partial<HttpOptions>;
  readonly notices?: readonly Notice[];
  /** What the supervisor would say of its shares. Default: nothing does. */
  readonly shares?: SharesService;
  /** Default: it listens where the document says. */
  readonly web?: WebService;
  /** For checks that ask installed programs; without it they find none. */
  readonly processes?: Processes;
  /** As in the daemon, a document that is sent to be carried out is the running one from then on. */
  readonly commits?: boolean;
  /** Name, inside the fixture's folder, of the file that the logger has open. Default: none. */
  readonly logFile?: string;
  /** Wraps the service that the plugins see. */
  readonly wrapConfig?: (config: OwnedConfigService) => OwnedConfigService;
}

export const SAMPLE = `[[connections]]
name = "nas"
type = "local"

[[shares]]
name = "photos"
connection = "nas"
remote_path = "/photos"

[[shares]]
name = "照片 2024"
connection = "nas"
remote_path = "/zh"
`;

/** The keys that presets set, as the mounting plugin declares them. */
const mountKeys = definePlugin({
  name: 'mount-keys',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Keys of [mount] without any mounting.',
  config: {
    section: 'mount',
    schema: Joi.object({
      root: Joi.string().default('/mnt/mountkeeper').description('Root.'),
      chunk_limit: Joi.string().default('64M').description('Chunk limit.'),
      multi_thread_streams: Joi.number().integer().default(4).description('Streams.'),
      multi_thread_cutoff: Joi.string().default('64M').description('Cutoff.'),
      buffer_size: Joi.string().default('16M').description('Buffer.'),
      write_back: Joi.string().default('5s').description('Write-back.'),
    }).meta({ tier: 'global' }),
    complete: (config) => {
      for (const share of config.shares) share.mount_point ??= `/mnt/mountkeeper/${share.name}`;
    },
  },
  register: () => undefined,
});

export const API_PLUGINS: readonly Plugin[] = [
  auth as Plugin,
  controlApi,
  logs,
  presets,
  mountKeys as Plugin,
];

function found(plugin: Plugin, log: pino.Logger) {
  return {
    name: plugin.name,
    version: plugin.version,
    description: plugin.description,
    folder: `/nowhere/${plugin.name}`,
    thirdParty: false,
    guard: plugin.guard === true,
    plugin,
    ledger: dryRun(plugin, log),
  };
}

function memoryLog(lines: Record<string, unknown>[]): pino.Logger {
  return pino(
    { level: 'debug' },
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
}

export function callPort(port: number, { method = 'GET', path, headers = {}, body }: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const text = bytes.toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: text,
            bytes,
            json: () => JSON.parse(text) as unknown,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** The service with some of its members replaced, also for itself. */
export function overriding(
  config: OwnedConfigService,
  members: Partial<Record<keyof OwnedConfigService, unknown>>,
): OwnedConfigService {
  return Object.assign(config, members);
}

function must(check: Awaited<ReturnType<OwnedConfigService['check']>>): LoadedConfig {
  if (!check.ok) throw new Error(check.message);
  return check.loaded;
}

interface Parts extends Pick<
  ApiFixture,
  'folder' | 'configFile' | 'config' | 'host' | 'http' | 'status' | 'sent' | 'logLines' | 'logger'
> {
  readonly refused: { reason: string | undefined };
  readonly contributions: Contributions;
}

function given({ shares, web }: FixtureOptions): Partial<Services> {
  return { web: web ?? { problem: undefined }, ...(shares && { shares }) };
}

function assembleParts(folder: string, options: FixtureOptions): Parts {
  const configFile = join(folder, 'config.toml');
  const clock = options.clock ?? createClock();
  const logLines: Record<string, unknown>[] = [];
  const log = memoryLog(logLines);
  const logFile = options.logFile === undefined ? '' : join(folder, options.logFile);
  if (logFile !== '') mkdirSync(dirname(logFile), { recursive: true });
  const logger = createLogger({ file: logFile, level: 'info', json: false });
  const secrets: Secrets = createSecrets({ env: options.env ?? {} });
  const plugins = options.plugins ?? API_PLUGINS;
  const sent: Sent[] = [];
  const refused: Parts['refused'] = { reason: undefined };
  const contributions = new Contributions({ ledgers: () => host.ledgers(), clock, log });
  const status = new StatusStore({ clock, log, owners: () => contributions.owners() });
  const http = createHttp({
    clock,
    log,
    hostnames: () => config.current.config.web.hostnames,
    trustedProxies: () => config.current.config.web.trusted_proxies,
    answered: (request) => void host.hooks.observe('afterRequest', request),
    ...options.http,
  });
  const config: OwnedConfigService = createConfigService({
    file: configFile,
    entries: () => host.entries(),
    protocols: () => host.protocols(),
    log,
    services: { secrets, clock, processes: options.processes ?? ({} as never) },
    requester: requesterNow,
    review: (next, diff) => host.hooks.veto('beforeReload', next, diff),
    reload: (next) => send('reload', next),
  });
  const send = async (command: keyof Commands, ...args: readonly unknown[]): Promise<void> => {
    if (refused.reason !== undefined) throw new Error(refused.reason);
    sent.push({ command, args });
    if (options.commits !== false && command === 'reload') config.commit(args[0] as LoadedConfig);
  };
  const host = createHost(
    {
      dirs: { inTree: folder },
      services: {
        clock,
        secrets,
        status,
        paths: { stateDir: join(folder, 'state'), packageDir: folder },
        logFile: logger.logFile,
        bandwidth: { read: () => BANDWIDTH },
        config: options.wrapConfig?.(config) ?? config,
        ...given(options),
      },
      projectors: [http.projector],
      clock,
      log,
      scheduler: { add: async () => () => undefined } as never,
      send,
    },
    async () => plugins.map((plugin) => found(plugin, log)),
  );
  return { folder, configFile, config, host, http, status, sent, logLines, logger, refused, contributions };
}

type Calls = Pick<ApiFixture, 'call' | 'get' | 'post'>;

function callsOf(http: Http): Calls {
  const call = (one: Call): Promise<Answer> => callPort(http.address?.port ?? 0, one);
  return {
    call,
    get: (path, headers = {}) => call({ path, headers }),
    post: (path, body, headers = {}) =>
      call(
        body === undefined
          ? { method: 'POST', path, headers }
          : {
              method: 'POST',
              path,
              headers: { 'content-type': 'application/json', ...headers },
              body: JSON.stringify(body),
            },
      ),
  };
}

function fixtureOf(parts: Parts): ApiFixture {
  const { folder, config, host, http, status, refused, contributions } = parts;
  return {
    ...parts,
    ...callsOf(http),
    get port() {
      return http.address?.port ?? 0;
    },
    get refusal() {
      return refused.reason;
    },
    set refusal(reason) {
      refused.reason = reason;
    },
    publish(shares, record = {}) {
      const { startedAt: _startedAt, ...base } = status.snapshot.record;
      status.publish({
        ...base,
        ...contributions.statusFields(),
        ...record,
        shares: shares.map(
          (share) =>
            ({
              ...emptyShareStatus(share.name),
              ...contributions.shareStatus(share.name),
              ...share,
            }) as ShareStatus,
        ),
      });
    },
    async apply(toml) {
      const loaded = must(await config.check(toml, 'file'));
      config.commit(loaded);
      await host.apply(loaded);
      return loaded;
    },
    fileText: () => readFile(parts.configFile, 'utf8'),
    async close() {
      await http.close();
      await host.stop('shutdown');
      parts.logger.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What holds now, as the supervisor would tell it. */
export const BANDWIDTH = {
  limit: { up: 8_388_608, down: 0 },
  effective: { up: 4_194_304, down: 0 },
  shares: [{ share: 'photos', up: 4_194_304, down: 0 }],
};

export async function createApi(options: FixtureOptions = {}): Promise<ApiFixture> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mk-api-')));
  const fixture = fixtureOf(assembleParts(folder, options));
  try {
    await writeFile(fixture.configFile, options.toml ?? SAMPLE, { mode: 0o600 });
    for (const [name, text] of Object.entries(options.state ?? {})) {
      mkdirSync(join(folder, 'state'), { recursive: true });
      await writeFile(join(folder, 'state', name), text);
    }
    fixture.status.setNotices(options.notices ?? []);
    await fixture.host.discover({ thirdPartyDirs: [], stateDir: folder, enabled: new Set() });
    await fixture.apply(options.toml ?? SAMPLE);
    await fixture.http.listen({ host: '127.0.0.1', port: 0 });
    return fixture;
  } catch (error) {
    await fixture.close();
    throw error;
  }
}
