import type { SambaTools } from '../samba.ts';

const TOOL_MS = 10_000;
/** 100 years; Samba keeps it in 32 bits. */
const NEVER_S = 3_153_600_000;

/** The server's own password database, by Samba's tools. All of it rejects with what the tool said. */
export class PasswordDatabase {
  readonly #tools: SambaTools;

  constructor(tools: SambaTools) {
    this.#tools = tools;
  }

  /**
   * Whoever knows a user's password could change it by a remote call (SAMR), so that the one of the configuration
   * is wrong. smb.conf has no key against that. A password that is too young to be changed is not, by its user; root's
   * tools do not mind its age.
   */
  async forbidChangesByUsers(): Promise<void> {
    await this.#run('pdbedit', ['-P', 'minimum password age', '-C', String(NEVER_S)]);
  }

  /** For each of these users in the database, the hash of the password by which smbd lets the user in. */
  async entries(names: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const text = await this.#run('pdbedit', ['-L', '-w']);
    // As in smbpasswd(5): name, uid, LM hash, NT hash, flags, when it was set.
    const lines = text.split('\n').map((line) => line.split(':'));
    const found = new Map(lines.map(([name = '', , , hash = '']) => [name.toLowerCase(), hash]));
    const entries = [...names].map((name): [string, string] => [name, found.get(name.toLowerCase()) ?? '']);
    return new Map(entries.filter(([, hash]) => hash !== ''));
  }

  async set(name: string, password: string): Promise<void> {
    const { conf } = this.#tools.paths;
    const input = `${password}\n${password}\n`;
    await this.#runFor(name, { command: 'smbpasswd', args: ['-c', conf, '-s', '-a', name], input });
  }

  async remove(name: string): Promise<void> {
    const { conf } = this.#tools.paths;
    await this.#runFor(name, { command: 'pdbedit', args: ['-s', conf, '-x', '-u', name] });
  }

  async #run(command: string, args: readonly string[]): Promise<string> {
    return this.#runFor(undefined, { command, args: ['-s', this.#tools.paths.conf, ...args] });
  }

  async #runFor(
    name: string | undefined,
    tool: { readonly command: string; readonly args: readonly string[]; readonly input?: string },
  ): Promise<string> {
    const { processes, env } = this.#tools;
    const { code, stderr, stdout } = await processes.run({ ...tool, env, timeoutMs: TOOL_MS });
    if (code === 0) return stdout;
    const whom = name === undefined ? '' : ` for the SMB user "${name}"`;
    const said = (stderr.trim() || stdout.trim()).split('\n').at(-1);
    throw new Error(`${tool.command} failed${whom}: ${said}`);
  }
}
