import type { Place } from './paths.ts';

/** One share as the server shows it. */
export interface ServedExport {
  readonly share: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** New for every process behind the mount: an old handle may never mean a file of another one. */
  readonly id: number;
  /** Which process is behind the mount. */
  readonly instance: string;
}

export interface ServerSettings {
  readonly place: Place;
  readonly port: number;
  readonly listen: string;
  readonly allowedClients: readonly string[];
  /** Whom the mounts belong to: every client acts as this user. */
  readonly uid: number;
  readonly gid: number;
}

/** Why a path cannot stand in the configuration; undefined when it can. */
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
 * Descriptors are let go within seconds of a client's close: as long as the server holds one, a file does not
 * go up.
 */
function serverBlocks({ place, port, listen }: ServerSettings): string {
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
  RecoveryRoot = "${place.recovery}";
  Delegations = false;
  Only_Numeric_Owners = true;
}
NFS_KRB5 {
  Active_krb5 = false;
  CCacheDir = "${place.credentials}";
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

function exportBlock(
  { allowedClients, uid, gid }: ServerSettings,
  { share, path, readOnly, id }: ServedExport,
): string {
  const clients =
    allowedClients.length === 0
      ? ''
      : `  CLIENT {
    Clients = ${allowedClients.flatMap(inHalves).join(', ')};
    Access_Type = ${readOnly ? 'RO' : 'RW'};
    Protocols = 4;
  }
`;
  return `EXPORT {
  Export_Id = ${id};
  Path = "${path}";
  Pseudo = "/${share}";
  Squash = All_Squash;
  Anonymous_Uid = ${uid};
  Anonymous_Gid = ${gid};
  FSAL {
    Name = VFS;
  }
${clients}}
`;
}

/**
 * NFS-Ganesha 4 takes no network of all addresses and would drop the whole export: it is named by its two
 * halves.
 */
function inHalves(client: string): readonly string[] {
  if (!client.endsWith('/0')) return [client];
  return client.includes(':') ? ['::/1', '8000::/1'] : ['0.0.0.0/1', '128.0.0.0/1'];
}

/**
 * Exports that must go before the others can come: the server refuses or crashes over a name or number that
 * changes hands at once.
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
