import { certificateCheck, createClock, isLoopback, SERVICE_USER, serviceUser } from 'mountkeeper';
import type { Check, Config, Processes } from 'mountkeeper';
import { plainHttpAdvice } from './exporter/certificate.ts';
import type { Address } from './exporter/health-check.ts';
import { listenProblem, proxyRights } from './exporter/proxy-process.ts';

export async function checks(
  { supervisor, web, webdav }: Config,
  processes: Processes,
): Promise<readonly Check[]> {
  if (!webdav.enabled) return [{ title: 'WebDAV', result: 'ok', detail: 'off (webdav.enabled)', advice: '' }];
  return [
    await addressCheck(webdav),
    loginCheck(webdav),
    ...(await rightsCheck(webdav, processes)),
    ...tlsChecks({ web, webdav }, supervisor.state_dir),
  ];
}

/** Does not report a taken port as an error: the daemon itself may be using it. */
async function addressCheck({ listen, port, tls }: Config['webdav']): Promise<Check> {
  const title = 'WebDAV address';
  const problem = await listenProblem({ host: listen, port });
  const isWrong = problem !== undefined && !problem.includes('is taken');
  return isWrong
    ? { title, result: 'error', detail: problem, advice: 'Correct webdav.listen or webdav.port.' }
    : {
        title,
        result: 'ok',
        detail: `${tls ? 'https' : 'http'}://${listen.includes(':') ? `[${listen}]` : listen}:${port}/`,
        advice: '',
      };
}

/** Beside a daemon that is not root the proxy has its user, and nothing to lose. */
async function rightsCheck(address: Pick<Address, 'port'>, processes: Processes): Promise<readonly Check[]> {
  if (process.geteuid?.() !== 0) return [];
  const title = 'WebDAV process';
  const rights = await proxyRights(address, processes);
  if (rights?.user) return [{ title, result: 'ok', detail: `runs as ${SERVICE_USER}`, advice: '' }];
  if (!rights)
    return [
      {
        title,
        result: 'warning',
        detail: 'runs as root: setpriv cannot take any of its rights away here',
        advice:
          'Install util-linux, of which setpriv is, and let it drop capabilities; then restart the daemon.',
      },
    ];
  const why = (await serviceUser())
    ? `the user ${SERVICE_USER} may not read its program`
    : `there is no user ${SERVICE_USER} here`;
  return [
    {
      title,
      result: 'warning',
      detail: `runs as root without capabilities: ${why}`,
      advice:
        `Make the user (useradd --system --user-group --shell /usr/sbin/nologin ${SERVICE_USER}), and let it read ` +
        'the program and Node.js; then restart the daemon.',
    },
  ];
}

function tlsChecks(config: Pick<Config, 'web' | 'webdav'>, stateDir: string): readonly Check[] {
  const { tls } = config.webdav;
  if (tls) return [certificateCheck(tls, { label: 'webdav.tls', stateDir, now: createClock().now() })];
  const advice = plainHttpAdvice(config);
  return advice === undefined
    ? []
    : [{ title: 'WebDAV TLS', result: 'warning', detail: 'plain HTTP beyond this machine', advice }];
}

function loginCheck({ users, listen }: Config['webdav']): Check {
  const title = 'WebDAV users';
  if (users.length > 0) return { title, result: 'ok', detail: `${users.length}`, advice: '' };
  if (isLoopback(listen))
    return { title, result: 'ok', detail: 'none: every user of this machine is let in', advice: '' };
  return {
    title,
    result: 'warning',
    detail: 'none: everybody who can reach the port is let in',
    advice: 'Add [[webdav.users]].',
  };
}
