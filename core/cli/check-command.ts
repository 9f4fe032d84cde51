/** `mountkeeper check`: reports what is wrong with a configuration file, and where. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { ConfigCheck, LoadedConfig } from '../contract/config.ts';
import { PACKAGE_DIR } from '../platform/package.ts';
import type { Arguments } from './arguments.ts';
import { EXIT } from './exit-codes.ts';
import { openOffline } from './offline.ts';
import type { Terminal } from './terminal.ts';

export async function runCheck(args: Arguments, configFile: string, terminal: Terminal): Promise<number> {
  const offline = await openOffline(configFile);
  try {
    const check = await offline.config.loadFile({ isStrict: true });
    const refused = offline.host
      .refused()
      .map(({ name, reason }) => `the plugin "${name}" is not used: ${reason}`);
    if (args.json) terminal.print(JSON.stringify(asJson(configFile, check, refused)));
    else if (check.ok) printValid(configFile, check.loaded, refused, terminal);
    else
      for (const line of [...problemLines(configFile, check), ...adviceOn(configFile)])
        terminal.printError(line);
    return check.ok ? EXIT.ok : EXIT.config;
  } finally {
    await offline.close();
  }
}

function asJson(file: string, check: ConfigCheck, refused: readonly string[]): object {
  return check.ok
    ? { ok: true, warnings: [...check.loaded.warnings, ...refused] }
    : { ok: false, file, problems: check.problems };
}

function printValid(
  file: string,
  loaded: LoadedConfig,
  refused: readonly string[],
  terminal: Terminal,
): void {
  for (const warning of [...loaded.warnings, ...refused]) terminal.print(`${file}: warning: ${warning}`);
  const { shares, connections } = loaded.config;
  terminal.print(`${file}: valid; shares: ${shares.length}, connections: ${connections.length}`);
}

/** `FILE:line:column: message`, one per problem; editors and terminals turn it into links. */
export function problemLines(file: string, check: Extract<ConfigCheck, { ok: false }>): readonly string[] {
  return check.problems.map(
    (problem) => `${file}:${problem.line ?? 1}:${problem.column ?? 1}: ${problem.message}`,
  );
}

/** What to do about a file that is missing or cannot be read; nothing when it can be read. */
export function adviceOn(file: string): readonly string[] {
  try {
    accessSync(file, constants.R_OK);
    return [];
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return [
      isMissing
        ? `Write it (${join(PACKAGE_DIR, 'config/example.toml')} is one to begin with), or name another ` +
          'with --config FILE.'
        : 'Run this as root or as another user who may read it, or name another with --config FILE.',
    ];
  }
}
