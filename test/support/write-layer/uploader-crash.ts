/** Uploaders that are killed: from one call on, nothing that they asked for is ever answered. */
import { writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { clock, settle, STILL_MS } from './uploader-share.ts';
import type { Fault, TestShare } from './uploader-share.ts';

export interface Crash {
  readonly fault: Fault;
  /** Settles when it has been struck. */
  readonly struck: Promise<void>;
}

/**
 * Before or after the effect, by turns: a call whose work was done and whose answer was lost is the hard one.
 */
export function crashAt(calls: number): Crash {
  let left = calls;
  let strike = (): void => undefined;
  const struck = new Promise<void>((resolve) => (strike = resolve));
  const fault: Fault = () => {
    left -= 1;
    if (left > 0) return undefined;
    strike();
    return new Promise(() => undefined);
  };
  return { fault, struck };
}

/** Lets an uploader work until it is killed, or until it is through. */
export async function crashAfter(share: TestShare, calls: number): Promise<void> {
  const { fault, struck } = crashAt(calls);
  const uploader = share.uploader(fault);
  await Promise.race([settle(uploader).catch(() => undefined), struck]);
  // What it had in hand beside: a killed process would not have come as far, but nothing depends on that.
  for (let turn = 0; turn < 20; turn += 1) await setImmediate();
  await new Promise((resolve) => setTimeout(resolve, 30));
}

/** A look of an uploader that is killed before its first step, when nobody has changed anything for a moment. */
export async function lookOnly(share: TestShare): Promise<void> {
  const asked = new Set(['below', 'listBelow', 'openForWriting', 'inUse']);
  const uploader = share.uploader((call) => (asked.has(call) ? undefined : new Promise(() => undefined)));
  await clock.sleep(STILL_MS);
  await uploader.look(new AbortController().signal);
}

/** A file that is changed here, to `ours`, then by others, to `of others`; no uploader has worked on it yet. */
export async function changeOnBothSides(share: TestShare, path: string): Promise<void> {
  share.othersWrite(path, 'first', 1_700_000_000);
  share.up();
  writeFileSync(share.at(path), 'ours');
  await lookOnly(share);
  share.othersWrite(path, 'of others');
  await share.renew();
}
