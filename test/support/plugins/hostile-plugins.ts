/**
 * Plugins that are broken or mean harm, each for a process of its own: what it does, and the words in which the
 * administrator reads of it, with the plugin's name, in the list of plugins or in the log.
 */

export interface HostilePlugin {
  /** What stands in `register(ctx)`. */
  readonly body?: string;
  /** The whole entry, in place of one with `body`. */
  readonly entry?: string;
  /** Keys of the plugin's definition. */
  readonly definition?: string;
  /** Keys of its package.json. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  readonly permissions?: readonly string[];
  /** Asked for after it is up, below its address or, with a slash in front, anywhere: `[path, status]`. */
  readonly asked?: readonly [path: string, status: number];
  /** The reason in the list, of a plugin that is not `active`. */
  readonly listed?: RegExp;
  /** A line in the log; the plugin stays `active`. Without both, it is `active` and did nobody any harm. */
  readonly logged?: RegExp;
}

const DEFAULT = ['read-status', 'send-commands', 'network', 'own-files'];
const never = 'new Promise(() => undefined)';
const block = 'for (;;);';
const soon = (what: string): string =>
  `ctx.effect('timer', () => { setTimeout(() => { ${what} }, 200); return () => undefined; });`;
const route = (handler: string, path = '/x', method = 'GET'): string =>
  `ctx.route({ method: '${method}', path: '${path}', handler: ${handler} });`;
const thrown = (what: string): string => `() => { throw new Error('${what}'); }`;
const cyclic = '() => { const endless = {}; endless.self = endless; return endless; }';
const NO_ANSWER = /it did not answer for 10 s: something in it loops or blocks/;
const define = (rest: string): string =>
  `import { definePlugin } from 'mountkeeper';\nexport default definePlugin({ name: 'NAME', version: '1.0.0', ` +
  `apiVersion: 1, description: 'Hostile.', register() {}${rest} });\n`;

/** Throws: in each verb. */
const THROWING: Readonly<Record<string, HostilePlugin>> = {
  'register-throws': {
    body: "throw new Error('out of register');",
    listed: /out of register.*register-throws\/index\.js:\d+|out of register/,
  },
  'tap-throws': {
    body: `ctx.tap('collectNotices', ${thrown('out of a tap')});`,
    logged: /failed in a hook and was skipped.*out of a tap/,
  },
  'status-throws': {
    body: `ctx.status('statusThrows', { default: 0, read: ${thrown('no figure')} });`,
    logged: /cannot be used and is left out.*no figure/,
  },
  'route-throws': {
    body: route(thrown('out of a route')),
    asked: ['x', 500],
    logged: /a route failed.*out of a route/,
  },
  'effect-throws': {
    body: `ctx.effect('a bed', ${thrown('no earth')});`,
    listed: /effect "a bed": no earth/,
  },
  'interval-throws': {
    body: `ctx.every({ name: 'tick', ms: () => 500, run: async () => { throw new Error('out of a tick'); } });`,
    logged: /out of a tick/,
  },
  'metric-throws': {
    body: `ctx.metric({ name: 'hostile_thrown', help: 'x', read: ${thrown('out of a metric')} });`,
    asked: ['/metrics', 200],
    logged: /out of a metric/,
  },
  'timer-throws': {
    body: soon("throw new Error('out of a timer');"),
    listed: /error that nobody caught: out of a timer \(.*index\.js:\d+/,
  },
  rejects: {
    body: soon("void Promise.reject(new Error('out of a promise'));"),
    listed: /rejection that nobody caught: out of a promise/,
  },
};

/** Never resolves, and blocks. */
const HANGING: Readonly<Record<string, HostilePlugin>> = {
  'tap-never': {
    body: `ctx.tap('collectNotices', () => ${never});`,
    logged: /failed in a hook and was skipped.*did not finish within 5 s/,
  },
  'status-never': {
    body: `ctx.status('statusNever', { default: 0, read: () => ${never} });`,
    logged: /cannot be used and is left out|not of the kind/,
  },
  'route-never': {
    body: route(`() => ${never}`),
    asked: ['x', 503],
    logged: /a route did not answer in time/,
  },
  'effect-never': {
    body: `ctx.effect('never', () => ${never});`,
    listed: /effect "never": did not finish within 25 s/,
  },
  'status-blocks': {
    body: `ctx.status('statusBlocks', { default: 0, read: () => { ${block} } });`,
    listed: NO_ANSWER,
  },
  'tap-blocks': { body: `ctx.tap('afterCycle', () => { ${block} });`, listed: NO_ANSWER },
  'route-blocks': { body: route(`() => { ${block} }`), asked: ['x', 500], listed: NO_ANSWER },
  'effect-blocks': { body: `ctx.effect('a bed', () => { ${block} });`, listed: NO_ANSWER },
};

/** Gives garbage, and changes what is not its own. */
const GIVING: Readonly<Record<string, HostilePlugin>> = {
  'tap-garbage': {
    body: "ctx.tap('collectNotices', () => [null, 1, { level: 'loud', message: 'x' }]);",
    logged: /gave a hook what cannot be used/,
  },
  'bandwidth-garbage': {
    body: "ctx.tap('resolveBandwidth', () => ({ up: 'all', down: -1 }));",
    logged: /needs up and down/,
  },
  'status-garbage': {
    body: `ctx.status('statusGarbage', { default: 0, read: ${cyclic} });`,
    logged: /cannot be used and is left out.*circular/,
  },
  'share-garbage': {
    body: "ctx.shareStatus(() => ({ mounted: false, health: 'failed', dirtyCount: 9 }));",
    logged: /is the core's own/,
  },
  'route-garbage': { body: route(cyclic), asked: ['x', 500], logged: /a route failed/ },
  'effect-garbage': {
    body: "ctx.effect('a bed', () => 7);",
    listed: /did not return its release, a function/,
  },
  'tab-garbage': { body: "ctx.tab({ id: 'Not An Id' });", listed: /needs an id of lower-case letters/ },
  'core-status': {
    body: "ctx.status('allSynced', { default: true, read: () => true });",
    listed: /fills the status field "allSynced", which is the core's own/,
  },
  mutates: {
    body: `ctx.every({ name: 'meddle', ms: () => 300, run: async () => {
      const { record } = ctx.use('status').snapshot;
      record.shares.length = 0; record.allSynced = false;
      Array.prototype.map = () => []; Object.prototype.mounted = false; globalThis.JSON.parse = () => ({});
      process.env.PATH = '/nowhere'; } });`,
    definition: "requires: ['status'],",
  },
  'takes-all': { body: route("() => 'mine'", '/{any*}', '*'), asked: ['api/status', 200] },
  floods: {
    body: soon(`for (let i = 0; i < 100_000; i += 1)
      void ctx.send('reconnect', 'none'.repeat(100)).catch(() => undefined);`),
    listed: /it sent more than the daemon can take/,
  },
};

/** At import. */
const IMPORTED: Readonly<Record<string, HostilePlugin>> = {
  'is-no-code': { entry: 'this is no code;', listed: /SyntaxError: .*is-no-code\/index\.js:\d+/ },
  'half-written': {
    entry: define('').slice(0, -20),
    listed: /SyntaxError: .*half-written\/index\.js:\d+/,
  },
  'import-loops': { entry: `${block}\n${define('')}`, listed: /it did not finish loading within 10 s/ },
  'import-waits': {
    entry: `await ${never};\n${define('')}`,
    listed: /it did not finish loading|exit code 13/,
  },
  'import-exits': { entry: `process.exit(3);\n${define('')}`, listed: /it called process\.exit\(3\)/ },
  'import-throws': {
    entry: `throw new Error('not today');\n${define('')}`,
    listed: /it cannot be loaded: not today \((?:at |.*import-throws\/)index\.js:1/,
  },
  'later-api': {
    entry: define(', apiVersion: 9').replace('apiVersion: 1, ', ''),
    listed: /it is written for apiVersion 9/,
  },
  'own-joi': {
    entry: define(''),
    manifest: { dependencies: { joi: '^17.0.0' } },
    listed: /package\.json lists joi under dependencies; take them from Mountkeeper/,
  },
  'secret-guard': { entry: define(', guard: true'), listed: /a guard must say so in its package\.json too/ },
};

/** Ends, takes and breeds. */
const GREEDY: Readonly<Record<string, HostilePlugin>> = {
  exits: { body: soon('process.exit(0);'), listed: /it called process\.exit\(0\)/ },
  aborts: { body: soon('process.abort();'), listed: /it was ended by SIG(ABRT|SEGV)/ },
  signals: {
    body: `ctx.effect('deaf', () => { for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'])
      process.on(name, () => undefined); return () => undefined; });`,
  },
  'keeps-port': {
    body: `ctx.effect('a port', () => { createServer().listen(PORT, '127.0.0.1'); return () => undefined; });`,
  },
  grows: {
    body: soon('globalThis.kept = Array.from({ length: 16 }, () => Buffer.alloc(67_108_864, 1));'),
    listed: /it took \d+ MiB of memory; 256 MiB is the most|it was ended by SIGKILL/,
  },
  breeds: {
    body: soon(
      "for (let i = 0; i < 50; i += 1) spawn('sleep', ['60'], { detached: i % 2 === 0, stdio: 'ignore' });",
    ),
    permissions: [...DEFAULT, 'processes'],
    listed: /it started \d+ processes; 20 is the most/,
  },
  'breeds-unasked': {
    body: "ctx.effect('a child', () => { spawn('sleep', ['60']); return () => undefined; });",
    listed: /without the permission "processes"; add "processes" to "mountkeeper": \{ "permissions"/,
  },
  'deletes-itself': {
    body: "ctx.effect('gone', () => { rmSync(import.meta.dirname, { recursive: true }); return () => undefined; });",
    listed: /without the permission "files"/,
  },
  'reads-secrets': {
    body: "ctx.effect('secrets', () => { readFileSync('/etc/passwd'); return () => undefined; });",
    listed: /without the permission "files" \(\/etc\/passwd\)/,
  },
  prints: {
    body: "ctx.every({ name: 'print', ms: () => 100, run: async () => console.log('x'.repeat(1e6)) });",
  },
};

/** By the plugin's name; groups that are tried at the same time. */
export const HOSTILE: readonly Readonly<Record<string, HostilePlugin>>[] = [
  THROWING,
  HANGING,
  GIVING,
  IMPORTED,
  GREEDY,
];
