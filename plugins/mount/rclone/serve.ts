import { rm } from 'node:fs/promises';
import type { ServeOptions } from 'mountkeeper';
import type { RcClient } from './control/remote-control.ts';

interface Serving {
  readonly id: string;
  readonly addr: string;
  readonly params: { readonly type?: string; readonly fs?: string; readonly baseurl?: string };
}

/**
 * Uses exactly the mount's name of the remote and no VFS options: only then rclone serves from the mount's
 * own VFS, so that what one client writes is visible to all others at once. The time limits apply to whole
 * transfers, which may take days.
 */
export async function serveInside(
  { protocol, socket, baseUrl, signal }: ServeOptions,
  rc: RcClient,
  fs: string,
): Promise<void> {
  const { list } = await rc.call<{ list: Serving[] | null }>('serve/list', {}, signal);
  const former = (list ?? []).find((one) => one.addr === socket);
  if (former?.params.type === protocol && former.params.fs === fs && former.params.baseurl === baseUrl)
    return;
  if (former) await rc.call('serve/stop', { id: former.id }, signal);
  // A socket left by a killed process would look like a living one.
  await rm(socket, { force: true });
  await rc.call(
    'serve/start',
    {
      type: protocol,
      fs,
      addr: `unix://${socket}`,
      baseurl: baseUrl,
      server_read_timeout: '720h',
      server_write_timeout: '720h',
      max_header_bytes: '65536',
    },
    signal,
  );
}
