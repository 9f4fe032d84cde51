import type { ShareClients } from './config.ts';
import type { NfsPaths } from './paths.ts';

/** One share in the server's configuration. */
export interface ServedExport {
  readonly share: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly clients: ShareClients;
  /**
   * New for every process behind the mount, because an old file handle must never refer to a file of
   * another one.
   */
  readonly id: number;
  /** Identifies the process behind the mount, or behind its folder of handles. */
  readonly instance: string;
  /** It is a folder of handles. Absent in what a former version noted. */
  readonly isMirror?: boolean;
}

export interface ServerSettings {
  readonly paths: NfsPaths;
  readonly port: number;
  readonly listen: string;
  /** The owner of the mounts: every client acts as this user. */
  readonly uid: number;
  readonly gid: number;
}

/** Why a path cannot be used in the configuration; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  return /["\\\x00-\x1f\x7f]/.test(path)
    ? `the mount point ${path} holds a quotation mark, a backslash or a control character; choose another mount_point`
    : undefined;
}

export function renderConfig(settings: ServerSettings, exports: readonly ServedExport[]): string {
  return `# Written by mountkeeper; changes are overwritten.\n${serverBlocks(settings)}${[...exports]
    .sort((a, b) => a.id - b.id)
    .map((one) => exportBlock(settings, one))
    .join('')}`;
}

/**
 * Descriptors are closed within seconds after a client closes a file, because a file is uploaded only when
 * the server no longer has it open.
 */
function serverBlocks({ paths, port, listen }: ServerSettings): string {
  return `NFS_CORE_PARAM {
  Protocols = 4;
  NFS_Port = ${port};
  Bind_addr = ${listen};
  Enable_NLM = false;
  Enable_RQUOTA = false;
  Enable_UDP = false;
  mount_path_pseudo = true;
}
NFSV4 {
  Graceless = true;
  Lease_Lifetime = 15;
  Minor_Versions = 0,1,2;
  RecoveryBackend = fs;
  RecoveryRoot = "${paths.recovery}";
  Delegations = false;
  Only_Numeric_Owners = true;
}
NFS_KRB5 {
  Active_krb5 = false;
  CCacheDir = "${paths.credentials}";
}
MDCACHE {
  LRU_Run_Interval = 2;
  FD_LWMark_Percent = 0;
}
EXPORT_DEFAULTS {
  SecType = sys;
  Protocols = 4;
  Transports = TCP;
  Access_Type = None;
}
LOG {
  Default_Log_Level = EVENT;
}
`;
}

/**
 * The first block that a client is in holds: whoever may only look stands first. Of a mirror the server keeps no
 * attributes: with them, it would say of a file that it is not there when the kernel has dropped its folder,
 * where it has to say that the folder's handle is stale.
 */
function exportBlock(
  { uid, gid }: ServerSettings,
  { share, path, readOnly, clients: { write, read }, id, isMirror }: ServedExport,
): string {
  return `EXPORT {
  Export_Id = ${id};
${isMirror === true ? '  Attr_Expiration_Time = 0;\n' : ''}\
  Path = "${path}";
  Pseudo = "/${share}";
  Squash = All_Squash;
  Anonymous_Uid = ${uid};
  Anonymous_Gid = ${gid};
  FSAL {
    Name = VFS;
  }
${clientBlock(read, 'RO')}${clientBlock(write, readOnly ? 'RO' : 'RW')}}
`;
}

function clientBlock(clients: readonly string[], access: 'RO' | 'RW'): string {
  if (clients.length === 0) return '';
  return `  CLIENT {
    Clients = ${clients.flatMap(inHalves).join(', ')};
    Access_Type = ${access};
    Protocols = 4;
  }
`;
}

/**
 * NFS-Ganesha 4 does not accept a network of all addresses and would drop the whole export, so it is
 * written as two halves.
 */
function inHalves(client: string): readonly string[] {
  if (!client.endsWith('/0')) return [client];
  return client.includes(':') ? ['::/1', '8000::/1'] : ['0.0.0.0/1', '128.0.0.0/1'];
}

/**
 * Exports that must be removed before others can be added: the server refuses, or crashes, when a name or
 * id moves in one step.
 */
export function standing(
  loaded: readonly ServedExport[],
  wanted: readonly ServedExport[],
): readonly ServedExport[] {
  return wanted.filter((one) => {
    const same = loaded.find((former) => former.share === one.share);
    return same === undefined || (same.id === one.id && same.path === one.path);
  });
}
