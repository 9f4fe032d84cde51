/**
 * `mountkeeper doctor`: reports what this machine lacks, and what to do about it. Works with and without a
 * running daemon.
 */
import { access, constants } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Check } from '../contract/notifications.ts';
import type { Config } from '../contract/config.ts';
import type { PluginInfo } from '../contract/services.ts';
import { refuseForeignState } from '../platform/files/state-folder.ts';
import { PLUGINS_USER } from '../platform/processes/rights.ts';
import { certificateCheck } from '../platform/certificates/doctor.ts';
import { plainHttpAdvice } from '../http/web-endpoint.ts';
import { adviceOn, problemLines } from './check-command.ts';
import { request } from './client.ts';
import type { Invocation } from './invocation.ts';
import { EXIT } from './exit-codes.ts';

const NOTHING_CONFIGURED = 'connections = []\n';
const MARK = { ok: 'ok', warning: 'WARN', error: 'FAIL' } as const;

export async function runDoctor(invocation: Invocation): Promise<number> {
  const { args, offline, terminal, configFile } = invocation;
  const found = await offline.config.loadFile();
  const checks: Check[] = [nodeCheck(), configCheck(configFile, found)];
  // The machine can be checked before there is a configuration, or a valid one.
  const loaded = found.ok ? found : await offline.config.check(NOTHING_CONFIGURED, 'file');
  if (loaded.ok) {
    const { config } = loaded.loaded;
    offline.config.commit(loaded.loaded);
    checks.push(
      await stateCheck(config),
      await webPortCheck(invocation, config),
      webTlsCheck(config, offline.clock.now()),
    );
    await offline.host.inspect(loaded.loaded);
    checks.push(
      ...pluginChecks(offline.host.list()),
      ...(await runnerChecks(config, offline.host.list())),
      ...(await offline.host.hooks.collect('collectChecks', config)),
    );
  }
  if (args.json) terminal.print(JSON.stringify(checks));
  else {
    terminal.table([
      ['', 'check', 'found'],
      ...checks.map((check) => [MARK[check.result], check.title, check.detail]),
    ]);
    for (const check of checks.filter((candidate) => candidate.advice !== ''))
      terminal.print(`\n${check.title}: ${check.advice}`);
  }
  return checks.some((check) => check.result === 'error') ? EXIT.failure : EXIT.ok;
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isGood = major > 20 || (major === 20 && minor >= 19);
  return {
    title: 'Node.js',
    result: isGood ? 'ok' : 'error',
    detail: process.versions.node,
    advice: isGood ? '' : 'install Node.js 20.19 or later',
  };
}

function configCheck(
  file: string,
  check: Awaited<ReturnType<Invocation['offline']['config']['loadFile']>>,
): Check {
  if (!check.ok) {
    const [
      advice = `mend the file, then run 'mountkeeper check --config ${file}'; what follows is about the defaults`,
    ] = adviceOn(file);
    return { title: 'configuration', result: 'error', detail: problemLines(file, check).join('; '), advice };
  }
  const { warnings } = check.loaded;
  return {
    title: 'configuration',
    result: warnings.length > 0 ? 'warning' : 'ok',
    detail: `${file} is valid`,
    advice: warnings.join('; '),
  };
}

async function stateCheck(config: Config): Promise<Check> {
  const dir = config.supervisor.state_dir;
  const foreign = await refuseForeignState(dir).catch((error: unknown) => (error as Error).message);
  if (foreign !== undefined)
    return {
      title: 'state folder',
      result: 'error',
      detail: foreign,
      advice: 'The daemon does not start with it.',
    };
  const problem = await access(dir, constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  );
  if (problem === undefined) return { title: 'state folder', result: 'ok', detail: dir, advice: '' };
  if (problem === 'ENOENT')
    return { title: 'state folder', result: 'ok', detail: `${dir} will be made`, advice: '' };
  return {
    title: 'state folder',
    result: 'error',
    detail: `${dir}: ${problem}`,
    advice: 'make it writable for the user the daemon runs as, or set supervisor.state_dir',
  };
}

/** Third-party plugins, and their folders, that cannot be used as they are, or may do more than they ask for. */
function pluginChecks(plugins: readonly PluginInfo[]): readonly Check[] {
  const notKept = plugins.flatMap(({ name, notKept: detail }): Check[] =>
    detail === undefined
      ? []
      : [
          {
            title: `permissions of ${name}`,
            result: 'warning',
            detail,
            advice: 'install util-linux, allow user namespaces to the daemon, or switch the plugin off',
          },
        ],
  );
  const everyUser = plugins.flatMap(({ name, everyUser: found }): Check[] =>
    found ? [{ title: `permissions of ${name}`, result: 'warning', ...found }] : [],
  );
  return [...unusable(plugins), ...notKept, ...everyUser];
}

/** Whom the processes of third parties' plugins run as; beside a daemon that is not root they have nothing to lose. */
async function runnerChecks(
  { supervisor }: Config,
  plugins: readonly PluginInfo[],
): Promise<readonly Check[]> {
  const areThere = plugins.some(
    ({ thirdParty, isolation, state }) => thirdParty && isolation !== 'none' && state !== 'disabled',
  );
  if (!areThere || process.geteuid?.() !== 0) return [];
  const { runnerUser } = await import('../plugins/runner/process/own-user.ts');
  const { why } = await runnerUser(supervisor.state_dir);
  const title = 'plugin processes';
  if (why === undefined) return [{ title, result: 'ok', detail: `run as ${PLUGINS_USER}`, advice: '' }];
  return [
    {
      title,
      result: 'warning',
      detail: `run as root without capabilities: ${why}`,
      advice:
        `Make the user (useradd --system --user-group --shell /usr/sbin/nologin ${PLUGINS_USER}), install ` +
        'util-linux, and let that user reach the program, Node.js and the state folder; then restart the daemon.',
    },
  ];
}

function unusable(plugins: readonly PluginInfo[]): readonly Check[] {
  return plugins
    .filter(({ thirdParty, state }) => thirdParty && state !== 'waiting')
    .flatMap(({ name, state, reason }) =>
      reason === undefined
        ? []
        : [
            {
              title: `plugin ${name}`,
              result: state === 'disabled' ? 'warning' : 'error',
              detail: reason,
              advice:
                'repair it, then make the daemon read it again by SIGHUP: ' +
                'systemctl kill --kill-who=main --signal=HUP mountkeeper',
            },
          ],
    );
}

function webTlsCheck({ supervisor, web }: Config, now: number): Check {
  const label = 'web.tls';
  if (web.tls) return certificateCheck(web.tls, { label, stateDir: supervisor.state_dir, now });
  const advice = plainHttpAdvice(web);
  const detail = `none: plain HTTP on ${web.listen}`;
  return { title: label, result: advice === undefined ? 'ok' : 'warning', detail, advice: advice ?? '' };
}

async function webPortCheck({ args, configFile, offline }: Invocation, config: Config): Promise<Check> {
  const { listen: host, port } = config.web;
  const title = `web port ${host}:${port}`;
  const problem = await bindProblem(host, port);
  if (problem === undefined) return { title, result: 'ok', detail: 'free', advice: '' };
  // No daemon answers: what that means is told below.
  const ours = await request(
    {
      configFile,
      url: args.url,
      env: process.env,
      secrets: offline.secrets,
      signal: offline.clock.deadline(3_000),
    },
    { method: 'GET', path: '/healthz' },
  ).catch(() => undefined);
  if (ours?.status === 200) return { title, result: 'ok', detail: 'the daemon answers', advice: '' };
  return {
    title,
    result: 'error',
    detail: problem,
    advice:
      problem === 'EADDRINUSE'
        ? 'another program holds the port; set web.port to a free one'
        : 'set web.listen to an address of this machine',
  };
}

function bindProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}
