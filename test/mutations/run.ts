/**
 * `npm run mutations`: makes each break of the list in a copy of the build, runs its test there and demands
 * that it fails, which it may not do without the break. Words choose breaks by their faults, files and tests.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import { copyOfBuild, testOf, whileBroken } from './build.ts';
import { MUTATIONS } from './list.ts';
import type { Mutation } from './list.ts';

/** A break may make a test hang, which is a failure as well. */
const LIMIT_MS = 150_000;

/** What the test runner says; `undefined` when it had to be ended. */
async function test(
  folder: string,
  mutation: Mutation,
): Promise<{ readonly code: number | undefined; readonly failed: number; readonly passed: number }> {
  const only = mutation.only === undefined ? [] : [`--test-name-pattern=${mutation.only}`];
  const args = ['--test', '--test-reporter=tap', ...only, testOf(mutation)];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIMIT_MS,
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece));
  await once(child, 'close');
  const last = (what: string): number => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  // Ended by its limit, the test runner exits as if a test had failed.
  return {
    code: child.killed ? undefined : (child.exitCode ?? undefined),
    failed: last('fail'),
    passed: last('pass'),
  };
}

/** A sentence when the tests did not see it. */
async function survival(folder: string, mutation: Mutation): Promise<string | undefined> {
  const { code, failed } = await whileBroken(folder, mutation, () => test(folder, mutation));
  if (code === 0)
    return (
      `test/${mutation.test} passes though ${mutation.file} is broken: ` +
      `${mutation.from} → ${mutation.to || 'nothing'}`
    );
  return code === undefined || failed > 0
    ? undefined
    : `test/${mutation.test} could not be run (exit code ${code})`;
}

/** The sentences that are a reason to fail. */
async function faults(folder: string, chosen: readonly Mutation[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  const whole = new Map(chosen.map((mutation) => [`${mutation.test} ${mutation.only ?? ''}`, mutation]));
  for (const mutation of whole.values()) {
    const { code, passed } = await test(folder, mutation);
    if (code !== 0 || passed === 0) wrong.push(`test/${mutation.test} does not pass when nothing is broken`);
  }
  for (const mutation of wrong.length > 0 ? [] : chosen) {
    const survives = await survival(folder, mutation);
    console.log(`${survives === undefined ? 'seen    ' : 'NOT SEEN'}  ${mutation.fault}`);
    if (survives !== undefined) wrong.push(survives);
  }
  return wrong;
}

async function main(words: readonly string[]): Promise<number> {
  const isMeant = ({ fault, file, test: name }: Mutation): boolean =>
    words.some((word) => `${fault} ${file} ${name}`.includes(word));
  const chosen = MUTATIONS.filter((mutation) => words.length === 0 || isMeant(mutation));
  process.env['MOUNTKEEPER_RCLONE'] = currentRclone();
  const scratch = await createScratch('mutations');
  const wrong = chosen.length === 0 ? [`no break has ${words.join(' or ')} in it`] : [];
  try {
    wrong.push(...(await faults(await copyOfBuild(scratch), chosen)));
  } finally {
    await scratch.close();
  }
  for (const sentence of wrong) console.error(sentence);
  if (wrong.length === 0) console.log(`${chosen.length} breaks, all seen`);
  return wrong.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
