/** `mountkeeper check`: says what is wrong with a configuration file, and where. */
import type { ConfigCheck } from '../api.ts';
import type { Arguments } from './arguments.ts';
import { EXIT } from './exit-codes.ts';
import { openOffline } from './offline.ts';
import type { Terminal } from './terminal.ts';

export async function runCheck(args: Arguments, configFile: string, terminal: Terminal): Promise<number> {
  const offline = await openOffline(configFile);
  try {
    const check = await offline.config.loadFile();
    if (args.json) terminal.print(JSON.stringify(check.ok ? { ok: true, warnings: check.loaded.warnings } : { ok: false, file: configFile, problems: check.problems }));
    if (!check.ok) {
      if (!args.json) for (const line of problemLines(configFile, check)) terminal.printError(line);
      return EXIT.config;
    }
    if (args.json) return EXIT.ok;
    for (const warning of check.loaded.warnings) terminal.print(`${configFile}: warning: ${warning}`);
    const { shares, connections } = check.loaded.config;
    terminal.print(`${configFile}: valid, ${shares.length} shares on ${connections.length} connections`);
    return EXIT.ok;
  } finally {
    await offline.close();
  }
}

/** `FILE:line:column: message`, one per problem; editors and terminals make links of them. */
export function problemLines(file: string, check: Extract<ConfigCheck, { ok: false }>): readonly string[] {
  return check.problems.map((problem) => `${file}:${problem.line ?? 1}:${problem.column ?? 1}: ${problem.message}`);
}
