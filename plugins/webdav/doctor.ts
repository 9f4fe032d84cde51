import { randomUUID } from 'node:crypto';
import { certificateCheck, createClock, isLoopback, SERVICE_USER, serviceUser } from 'mountkeeper';
import type { Check, Config, Processes } from 'mountkeeper';
import { plainHttpAdvice } from './exporter/certificate.ts';
import type { Address } from './exporter/health-check.ts';
import { listenProblem, proxyRights } from './exporter/proxy-process.ts';
import { membersOf } from './system/group.ts';
import { isRightPassword, PROGRAM } from './system/password.ts';

export async function checks(
  { supervisor, web, webdav }: Config,
  processes: Processes,
): Promise<readonly Check[]> {
  if (!webdav.enabled) return [{ title: 'WebDAV', result: 'ok', detail: 'off (webdav.enabled)', advice: '' }];
  return [
    await addressCheck(webdav),
    loginCheck(webdav),
    ...(await systemChecks(webdav, processes)),
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

async function systemChecks(
  { system_group: group }: Config['webdav'],
  processes: Processes,
): Promise<readonly Check[]> {
  if (group === undefined) return [];
  return [await membersCheck(group, processes), await pamCheck(processes)];
}

async function membersCheck(group: string, processes: Processes): Promise<Check> {
  const title = 'WebDAV users of this machine';
  const advice = `Make the group and put people in it (groupadd ${group}; gpasswd --add NAME ${group}).`;
  try {
    const { length } = await membersOf(group, processes);
    return length > 0
      ? { title, result: 'ok', detail: `${length}`, advice: '' }
      : { title, result: 'warning', detail: `the group "${group}" has no members`, advice };
  } catch (error) {
    return { title, result: 'error', detail: (error as Error).message, advice };
  }
}

/** An account that nobody has: what is asked is whether the program answers. */
async function pamCheck(processes: Processes): Promise<Check> {
  const title = 'WebDAV and PAM';
  const nobody = { name: `no-${randomUUID().slice(0, 8)}`, password: 'none' };
  try {
    await isRightPassword(nobody, processes);
    return { title, result: 'ok', detail: PROGRAM, advice: '' };
  } catch (error) {
    const advice =
      'Install pwauth (apt install --no-install-recommends pwauth): without it, users of this machine cannot log in.';
    return { title, result: 'error', detail: (error as Error).message, advice };
  }
}

function loginCheck({ users, listen, system_group: group }: Config['webdav']): Check {
  const title = 'WebDAV users';
  if (users.length > 0 || group !== undefined)
    return { title, result: 'ok', detail: `${users.length}`, advice: '' };
  if (isLoopback(listen))
    return { title, result: 'ok', detail: 'none: every user of this machine is let in', advice: '' };
  return {
    title,
    result: 'warning',
    detail: 'none: everybody who can reach the port is let in',
    advice: 'Add [[webdav.users]].',
  };
}
