/**
 * Plugins that are broken or mean harm, each for a process of its own: what it does, and the words in which the
 * administrator reads of it, with the plugin's name, in the list of plugins or in the log.
 */

import { inForm } from '../platform/long-form.ts';

/** Asked for below its address or, with a slash in front, anywhere. A `POST` comes as from a form. */
export type Asked = readonly [path: string, status: number, method?: 'POST'];

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
  /** The user that its folder belongs to until it is mended; needs root. */
  readonly owner?: number;
  /** Asked for at the same time, after it is up. */
  readonly asked?: readonly Asked[];
  /** Its own table, and what it is changed to once the plugin is up. */
  readonly table?: readonly [first: Keys, then: Keys];
  /** The format of webhooks that the daemon uses meanwhile; one plugin of a group has it. */
  readonly format?: string;
  /** The reason in the list, of a plugin that is not `active`. */
  readonly listed?: RegExp;
  /** Lines in the log; the plugin stays `active`. Without both, it is `active` and did nobody any harm. */
  readonly logged?: RegExp | readonly RegExp[];
  /** A line in the log once it was told to go. */
  readonly loggedAtEnd?: RegExp;
  /** How long that may take; 90 s unless said. */
  readonly withinMs?: number;
}

type Keys = Readonly<Record<string, number>>;

type Group = Readonly<Record<string, HostilePlugin>>;

const DEFAULT = ['read-status', 'send-commands', 'network', 'own-files'];
const never = 'new Promise(() => undefined)';
const block = 'for (;;);';
/** And then goes on. Takes no processor time from the others. */
const rest = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000);';
const soon = (what: string): string =>
  `ctx.effect('timer', () => { setTimeout(() => { ${what} }, 200); return () => undefined; });`;
const route = (handler: string, path = '/x', method = 'GET'): string =>
  `ctx.route({ method: '${method}', path: '${path}', handler: ${handler} });`;
const thrown = (what: string): string => `() => { throw new Error('${what}'); }`;
const cyclic = '() => { const endless = {}; endless.self = endless; return endless; }';
const NO_ANSWER = /it did not answer for 10 s: something in it loops or blocks/;
const NOT_GONE = /has hung.*it did not go within 5 s and was ended/;
const WAS_SILENT = /has hung.*it did not answer for about \d+ s: something in it loops or blocks/;
/** Sends notifications, no more than it may, which it may handle, or somebody delivers. */
const notifies = `ctx.every({ name: 'notify', ms: () => 3_000, run: () => ctx.send('notify',
  { type: 'hostile', severity: 'info', message: 'x', data: {}, key: String(performance.now()) }) });`;
/** A tab with one function for all that it has. */
const tab = (id: string, fn: string): string =>
  `const fn = ${fn}; ctx.tab({ id: '${id}', title: 'x', render: fn, parts: { one: fn }, actions: { go: fn } });`;
const tabAsked = (id: string, part: number): readonly Asked[] => [
  [`/tabs/${id}`, 200],
  [`/dashboard/parts/${id}/one`, part],
  [`/dashboard/do/${id}/go`, 200, 'POST'],
];
/** By whom it is logged that they were not drawn. */
const notDrawn = (render: string, action = render): readonly RegExp[] => [
  new RegExp(`a part of the dashboard was not drawn.*${render}`),
  new RegExp(`a part of a tab was not drawn.*${render}`),
  new RegExp(`an action of the dashboard failed.*${action}`),
];
/** An event of its own, given twice a second and heard by itself. */
const hears = (name: string, fn: string): string =>
  `const give = ctx.event({ name: '${name}:tick', summary: 'x', value: Joi.any() }); ctx.on('${name}:tick', ${fn});
  ctx.every({ name: 'give', ms: () => 500, run: async () => give(1) });`;
const NOT_HEARD = 'plugin failed to take an event; others have heard of it';
const format = (render: string): string =>
  `ctx.webhookFormat({ name: 'card', render: ${render} }); ${notifies}`;
const define = (rest: string): string =>
  `import { definePlugin } from 'mountkeeper';\nexport default definePlugin({ name: 'NAME', version: '1.0.0', ` +
  `apiVersion: 1, description: 'Hostile.', register() {}${rest} });\n`;

/** Throws: in each verb. */
const THROWING: Group = {
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
    asked: [['x', 500]],
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
    asked: [['/metrics', 200]],
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
  'command-throws': {
    body: `ctx.handle('notify', ${thrown('out of a command')}); ${notifies}`,
    logged: /command failed.*out of a command/,
  },
  'share-throws': {
    body: `ctx.shareStatus({ defaults: { shareThrows: 0 }, read: ${thrown('no mood')} });`,
    logged: /cannot be used and is left out.*no mood/,
  },
  'tab-throws': {
    body: tab('tab-throws', thrown('out of a tab')),
    asked: tabAsked('tab-throws', 500),
    logged: notDrawn('out of a tab'),
  },
  'format-throws': {
    body: format(thrown('out of a format')),
    format: 'format-throws/card',
    logged: /notification not delivered.*the format .*out of a format/,
  },
  'event-throws': {
    body: hears('event-throws', thrown('out of an event')),
    logged: new RegExp(`${NOT_HEARD}.*out of an event`),
  },
  'change-throws': {
    body: `ctx.onConfigChange(${thrown('out of a change')});`,
    definition:
      "config: { schema: Joi.object({ beds: Joi.number().meta({ tier: 'live' }).description('x.') }) },",
    table: [{ beds: 1 }, { beds: 2 }],
    logged: /failed to take over its changed configuration.*out of a change/,
  },
};

/** Never resolves, and blocks. */
const HANGING: Group = {
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
    asked: [['x', 503]],
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
  'route-blocks': { body: route(`() => { ${block} }`), asked: [['x', 500]], listed: NO_ANSWER },
  'effect-blocks': { body: `ctx.effect('a bed', () => { ${block} });`, listed: NO_ANSWER },
  'command-never': {
    body: `ctx.handle('notify', () => ${never}); ${notifies}`,
    logged: /did not end with a command in time/,
  },
  'tab-never': {
    body: tab('tab-never', `() => ${never}`),
    asked: tabAsked('tab-never', 500),
    logged: notDrawn('it took too long|did not finish within 10 s'),
  },
  'format-never': {
    body: format(`() => ${never}`),
    format: 'format-never/card',
    logged: /notification not delivered.*the format .*did not finish within 5 s/,
  },
  'event-never': {
    body: hears('event-never', `() => ${never}`),
    logged: new RegExp(`${NOT_HEARD}.*did not finish within 5 s`),
  },
  'release-never': {
    body: `ctx.effect('a bed', () => () => ${never});`,
    loggedAtEnd: /plugin left something behind.*a bed.*did not finish within 4 s/,
  },
  'release-blocks': {
    body: `ctx.effect('a bed', () => () => { ${block} });`,
    loggedAtEnd: NOT_GONE,
  },
  'tap-rests': { body: `ctx.tap('afterCycle', () => { ${rest} });`, logged: WAS_SILENT },
  'route-rests': { body: route(`() => { ${rest} return 'well'; }`), asked: [['x', 200]], logged: WAS_SILENT },
  'effect-rests': {
    body: `ctx.effect('a bed', () => { ${rest} return () => undefined; });`,
    logged: WAS_SILENT,
  },
  'interval-rests': {
    body: `ctx.every({ name: 'rest', ms: () => 2_000, run: async () => { ${rest} } });`,
    logged: WAS_SILENT,
  },
};

/** Gives garbage, and changes what is not its own. */
const GIVING: Group = {
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
  'route-garbage': { body: route(cyclic), asked: [['x', 500]], logged: /a route failed/ },
  'effect-garbage': {
    body: "ctx.effect('a bed', () => 7);",
    listed: /did not return its release, a function/,
  },
  'tab-garbage': { body: "ctx.tab({ id: 'Not An Id' });", listed: /needs an id of lower-case letters/ },
  'metric-garbage': {
    body: "ctx.metric({ name: 'hostile_garbage', help: 'x', read: () => 'many' });",
    asked: [['/metrics', 200]],
    logged: /metric.*cannot be used and is left out/,
  },
  'drawing-garbage': {
    body: tab('drawing-garbage', "() => h('script', { src: 'x' }, 'x')"),
    asked: tabAsked('drawing-garbage', 500),
    logged: notDrawn('script', 'an action gave no outcome'),
  },
  'format-garbage': {
    body: format("() => ({ body: 7, headers: 'none' })"),
    format: 'format-garbage/card',
    logged: /notification not delivered.*the format .*gave no text as body/,
  },
  'event-garbage': {
    body: `const give = ctx.event({ name: 'event-garbage:tick', summary: 'x', value: Joi.any() });
      ctx.every({ name: 'give', ms: () => 500, run: async () => give((${cyclic})()) });`,
    logged: /as an event cannot be used; nobody is told.*holds itself/,
  },
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
  'takes-all': { body: route("() => 'mine'", '/{any*}', '*'), asked: [['api/status', 200]] },
  floods: {
    body: `ctx.every({ name: 'flood', ms: () => 50, run: async () => {
      for (let i = 0; i < 500; i += 1) void ctx.send('reconnect', 'none').catch(() => undefined); } });`,
    listed: /it sent more than the daemon can take/,
  },
};

/** At import. */
const IMPORTED: Group = {
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
  // Its files are well: giving it back is all that mends it.
  'foreign-folder': {
    body: route("() => 'well'", '/'),
    owner: 65_534,
    listed: /foreign-folder belongs to user 65534, not to root, .* run: chown -R root \S+foreign-folder$/,
  },
  'secret-guard': { entry: define(', guard: true'), listed: /a guard must say so in its package\.json too/ },
};

/** Ends, takes and breeds. */
const GREEDY: Group = {
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
  leaks: {
    body: `ctx.effect('much', () => {
      setInterval(() => undefined, 10);
      createServer().listen(0, '127.0.0.1', function listens() { connect(this.address().port, '127.0.0.1'); });
      for (const detached of [true, false]) spawn('sleep', ['LEAKED'], { detached, stdio: 'ignore' });
      return () => undefined; });`,
    permissions: [...DEFAULT, 'processes'],
    loggedAtEnd: /has left something open.*a server/,
  },
  prints: {
    body: "ctx.every({ name: 'print', ms: () => 100, run: async () => console.log('x'.repeat(1e6)) });",
  },
};

/** What is told of after a minute, and waits for the next one before; played beside all the others. */
export const SLOW: Group = {
  'interval-never': {
    body: `ctx.every({ name: 'tick', ms: () => 500, run: () => ${never} });`,
    logged: /a run takes long; no other begins before it ends.*interval "tick"/,
    loggedAtEnd: /interval does not stop and is abandoned.*tick/,
    withinMs: 200_000,
  },
  'job-never': {
    body: `ctx.job({ name: 'minute', cron: () => '* * * * *', run: () => ${never} });`,
    logged: /a run takes long; no other begins before it ends.*job "minute"/,
    loggedAtEnd: /job does not stop and is abandoned.*minute/,
    withinMs: 200_000,
  },
  'job-throws': {
    body: `ctx.job({ name: 'minute', cron: () => '* * * * *', run: ${thrown('out of a job')} });`,
    logged: /job failed; it will run again on its schedule.*out of a job/,
    withinMs: 200_000,
  },
};

/** By the plugin's name; groups that are tried at the same time. */
export const ALL: readonly Group[] = [THROWING, HANGING, GIVING, IMPORTED, GREEDY];

/**
 * In the long form alone, since each takes about five seconds of a processor. What throws is in
 * test/core/plugins/odd-throws.test.ts too, what rests in test/core/plugins/runner; that formats and events which
 * hang or give garbage harm nobody beside a mount, the long form alone shows.
 */
const LONG: ReadonlySet<string> = new Set(
  [
    'command-throws share-throws format-throws event-throws change-throws tab-never format-never event-never',
    'route-rests effect-rests interval-rests metric-garbage drawing-garbage format-garbage event-garbage',
  ]
    .flatMap((names) => names.split(' '))
    .concat(Object.keys(SLOW)),
);
/** In the short form these stand still: as silent as those that loop, without ten seconds of a processor. */
const STILL: ReadonlySet<string> = new Set(['status-blocks', 'route-blocks', 'effect-blocks']);
const stands = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';
const stilled = ({ body, ...rest }: HostilePlugin): HostilePlugin => ({
  ...rest,
  ...(body !== undefined && { body: body.replace(block, stands) }),
});
const shortened = (group: Group): Group =>
  Object.fromEntries(
    Object.entries(group)
      .filter(([name]) => !LONG.has(name))
      .map(([name, one]) => [name, STILL.has(name) ? stilled(one) : one]),
  );
/** Who is not root can give no folder away. */
const possible = (group: Group): Group =>
  Object.fromEntries(
    Object.entries(group).filter(([, { owner }]) => owner === undefined || process.geteuid?.() === 0),
  );
const played = (group: Group): Group =>
  possible(
    inForm({
      short: shortened(group),
      long: group,
    }),
  );

export const HOSTILE: readonly Group[] = ALL.map(played);
/** What is played beside all others. */
export const SLOW_ONES: Group = played(SLOW);
