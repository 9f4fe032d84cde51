/** `mountkeeper import`: a remote of rclone, or an entry of fstab, as a connection and a share. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { CliContext, ShareSpec } from 'mountkeeper';
import { refuseForeignConfig } from '../offline.ts';
import { createPrompter, INTERRUPTED } from '../terminal/prompter.ts';
import { readSmallFile } from '../terminal/small-file.ts';
import { IMPORT_USAGE } from '../usage.ts';
import { credentialFiles } from './credential-files.ts';
import { doubtsOf } from './doubts.ts';
import { draftOf, writeDraft } from './draft.ts';
import type { Draft } from './draft.ts';
import { foreignProblem } from './foreign-file.ts';
import { importFstab } from './fstab.ts';
import type { Imported } from './imported.ts';
import { importRemote } from './rclone-conf.ts';

const EXIT = { done: 0, failed: 1, usage: 64 } as const;
const TRY_MS = 20_000;
const LONGEST_FSTAB = 4 * 1_048_576;

interface Wish {
  readonly kind: 'rclone' | 'fstab';
  readonly what: string;
  readonly from: string;
  readonly name: string | undefined;
  readonly untried: boolean;
  readonly yes: boolean;
}

/** Returns a sentence when the arguments are wrong. */
export function wishOf(args: readonly string[]): Wish | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        from: { type: 'string' },
        name: { type: 'string' },
        untried: { type: 'boolean' },
        yes: { type: 'boolean' },
      },
    });
    const [kind, what, ...more] = positionals;
    if ((kind !== 'rclone' && kind !== 'fstab') || what === undefined || more.length > 0)
      return `usage: ${IMPORT_USAGE}`;
    const usual = kind === 'fstab' ? '/etc/fstab' : rcloneConfig();
    const { from = usual, name, untried = false, yes = false } = values;
    return { kind, what, from: resolve(from), name, untried, yes };
  } catch (error) {
    return (error as Error).message;
  }
}

function rcloneConfig(): string {
  return process.env['RCLONE_CONFIG'] ?? join(homedir(), '.config/rclone/rclone.conf');
}

async function run(cli: CliContext): Promise<number> {
  const wish = wishOf(cli.args);
  if (typeof wish === 'string') {
    cli.printError(`mountkeeper import: ${wish}`);
    return EXIT.usage;
  }
  if (!wish.yes && process.stdin.isTTY !== true) {
    cli.printError('mountkeeper import: nobody can be asked here; --yes writes without asking');
    return EXIT.usage;
  }
  await refuseForeignConfig(cli);
  const config = await cli.offline('config');
  const imported = await read(cli, wish);
  const draft = await draftOf(imported, config, wish.name);
  const reaching = await doubtsOf(draft, config);
  const unsafe = (await cli.offline('mounter')).doubtsOf?.(draft.clear) ?? [];
  show(cli, wish, { draft, notes: imported.notes, doubts: [...imported.doubts, ...unsafe], reaching });
  // What the mounter doubts, the dashboard takes over with the same warning.
  const isDoubtful = reaching.length + imported.doubts.length > 0;
  if (!(await isAgreed(cli, wish, isDoubtful))) return EXIT.failed;
  // Not before somebody has agreed: rclone uses the keys and runs the programs that the remote names.
  if (!wish.untried) await tryNas(cli, draft);
  cli.signal.throwIfAborted();
  const applied = await writeDraft(draft, config);
  if (!applied.ok) {
    cli.printError(applied.message);
    return EXIT.failed;
  }
  cli.print(`${cli.configFile} is written; a daemon that runs on it reads it by itself.`);
  return EXIT.done;
}

interface Found {
  readonly draft: Draft;
  readonly notes: readonly string[];
  readonly doubts: readonly string[];
  /** What reaches beyond the NAS: files and programs of this machine. */
  readonly reaching: readonly string[];
}

function show(cli: CliContext, { from }: Wish, { draft, notes, doubts, reaching }: Found): void {
  cli.print(`To be added to ${cli.configFile}:\n\n${draft.toml.trimEnd()}\n`);
  for (const { path } of draft.secrets) cli.print(`Secret, to be written with mode 0600: ${path}`);
  for (const note of notes) cli.printError(`note: ${note}`);
  for (const doubt of [...doubts, ...reaching]) cli.printError(`careful: ${doubt}`);
  if (reaching.length > 0)
    cli.printError(`What is there may use files and run programs of this machine; look at it in ${from}.`);
}

/** A program that asks nobody takes only what the dashboard would take, unless it says that it knows better. */
async function isAgreed(cli: CliContext, { yes, untried }: Wish, isDoubtful: boolean): Promise<boolean> {
  if (!yes) {
    const question = untried ? 'Write this?' : 'Try this at the NAS, and write it?';
    if (await confirmed(cli, question, !isDoubtful)) return true;
    cli.printError('Nothing was changed.');
    return false;
  }
  if (!isDoubtful || untried) return true;
  cli.printError('Nothing was tried or changed; --untried takes it over without asking the NAS.');
  return false;
}

async function read(cli: CliContext, { kind, what, from }: Wish): Promise<Imported> {
  if (kind === 'fstab')
    return importFstab(
      await readSmallFile({ path: from, what: from, mostBytes: LONGEST_FSTAB, problem: foreignProblem }),
      what,
      credentialFiles(),
    );
  const [{ command }, processes] = [await cli.offline('rclone'), await cli.offline('processes')];
  return importRemote(from, what, { command, processes, signal: cli.signal });
}

/** Rejects with what the NAS said, and how to go on all the same. */
async function tryNas(cli: CliContext, { clear, share }: Draft): Promise<void> {
  const mounter = await cli.offline('mounter');
  const spec = {
    connection: clear,
    share: { remote_path: '', mount_point: '', read_only: true, protocols: [], ...share },
  } as unknown as ShareSpec;
  cli.progress('Asking the NAS …');
  try {
    await mounter.probe(spec, cli.clock.deadline(TRY_MS, cli.signal));
  } catch (cause) {
    cli.signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`the NAS refuses: ${reason}; --untried takes it over all the same`, { cause });
  }
}

async function confirmed(cli: CliContext, question: string, usual: boolean): Promise<boolean> {
  const prompter = createPrompter({ input: process.stdin, output: process.stderr, signal: cli.signal });
  try {
    return await prompter.confirm(question, usual);
  } finally {
    prompter.close();
  }
}

export async function importForeign(cli: CliContext): Promise<number> {
  try {
    return await run(cli);
  } catch (error) {
    if (cli.signal.aborted) throw new Error(INTERRUPTED, { cause: error });
    throw error;
  }
}
